"""``playhead import``: import a run from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_cli.targets.trust import is_known

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedImport
    from playhead_receiver.archive.run_files import Incoming


@playhead_command("import", short_help="Import a run from a file")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--partial", is_flag=True, help="Import the readable part of a damaged file.")
def command(session: Session, file: Path, partial: bool) -> int:
    """Import a run from a tape file or from OTLP JSON lines. Importing it again has no effect.

    A damaged file is refused, with the position of the damage. Exit status 1 if part of the file was
    not imported.
    """
    from playhead_cli.store_changes import carry_out, names_of, send
    from playhead_receiver.archive.run_files import incoming
    from playhead_receiver.maintenance.jobs import Mark
    from playhead_receiver.storage.api.retention import IMPORTED

    found = incoming(file, partial=partial)
    before = _position(session)
    rejected = send(session, found)
    names = names_of(session, found.trace_ids)
    new = _position(session) != before
    if new and not is_known(session.data_dir, file):
        for name in names.values():
            carry_out(session, Mark(name, IMPORTED, on=True))
    if session.as_json:
        printed: PrintedImport = {
            "schema_version": 1,
            "runs": [{"name": name, "trace_id": id} for id, name in names.items()],
            "new": new,
            "facts": found.facts,
            "spans": found.spans,
            "rejected": rejected,
            "damage": found.damage or None,
        }
        session.print_json(printed)
    else:
        _say(session, found, rejected, list(names.values()), new)
    return 1 if rejected or found.damage else 0


def _say(session: Session, found: Incoming, rejected: int, names: list[str], new: bool) -> None:
    from playhead_cli.output.words import count

    for name in names:
        session.say(f"imported {name}" if new else f"{name} exists already")
    if not names:
        session.say("the file contains no run")
    if rejected:
        session.say(f"{count(rejected, 'record')} were not imported")
    if found.damage:
        session.say(f"{found.damage}; the data before it was imported")
    for name in names[:1]:
        session.suggest(f"playhead show {name}")


def _position(session: Session) -> int:
    """How far the store's changes go: it moves only when something is new."""
    from playhead_receiver.storage import open_store

    if session.has_no_store:
        return 0
    store = open_store(session.store, read_only=True)
    try:
        return store.position()
    finally:
        store.close()
