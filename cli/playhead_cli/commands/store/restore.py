"""``playhead restore``: restore the store from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedRestoration


@playhead_command("restore", short_help="Restore the store from a backup")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def command(session: Session, folder: Path) -> None:
    """Restore the store from the backup in FOLDER. The data folder must not have a store.

    The tokens of the backup are valid again, including tokens revoked after the backup.
    """
    from playhead_receiver.tenants.backup import put_back

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
