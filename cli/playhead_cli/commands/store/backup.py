"""``playhead backup`` and ``playhead restore``: copy the store to a folder, and back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.output.words import count, size
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_cli.store_changes import note
from playhead_core.errors import UsageError
from playhead_receiver.tenants.backup import back_up, put_back

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedBackup, PrintedRestoration


@playhead_command("backup", short_help="Back up the store while it is in use")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def command(session: Session, folder: Path) -> int:
    """Copy the store into FOLDER, which must be new or empty. A receiver may be running.

    Includes the stores of all tenants, tokens (as digests) and the audit log. Damaged data is copied
    as it is; exit status 1 if a blob could not be read.
    """
    note(session, "playhead backup", "export", "everything")
    missing = back_up(session.store, session.data_dir, folder)
    size_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if session.as_json:
        printed: PrintedBackup = {
            "schema_version": 1,
            "folder": os.path.abspath(folder),
            "size_bytes": size_bytes,
            "missing_blobs": missing,
        }
        session.print_json(printed)
        return 1 if missing else 0
    session.say(f"copied {session.data_dir} to {folder}: {size(size_bytes)}")
    if missing:
        session.say(f"{count(missing, 'blob')} could not be read: playhead verify says whose")
        return 1
    session.suggest(f"playhead restore {folder}")
    return 0


@playhead_command("restore", short_help="Restore the store from a backup")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def restore_command(session: Session, folder: Path) -> None:
    """Restore the store from the backup in FOLDER. The data folder must not have a store.

    The tokens of the backup are valid again, including tokens revoked after the backup.
    """
    if session.settings.store:
        raise UsageError(
            "a store on PostgreSQL is restored with PostgreSQL's own tools",
            cause="objects go back to where they were, access.sqlite into the data folder",
            hint=f"pg_restore -d {session.store_name} runs.dump",
        )
    put_back(folder, session.data_dir)
    if session.as_json:
        printed: PrintedRestoration = {"schema_version": 1, "data_dir": str(session.data_dir)}
        session.print_json(printed)
        return
    session.say(f"restored {folder} to {session.data_dir}")
    session.suggest("playhead ls")
