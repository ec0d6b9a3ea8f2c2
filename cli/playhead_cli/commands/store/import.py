"""``playhead import``: import runs from files of playhead and of other tools."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.output.words import count
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_cli.store_changes import carry_out, names_of, sender
from playhead_cli.targets.trust import is_known
from playhead_core.untrusted.shown_text import visible
from playhead_receiver.archive.run_files import Incoming
from playhead_receiver.importers.formats import incoming
from playhead_receiver.maintenance.jobs import Mark
from playhead_receiver.storage import open_store
from playhead_receiver.storage.api.retention import IMPORTED

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedImport

FORMATS = (
    "tape", "otlp", "har", "vcr", "jaeger", "langsmith", "openai", "mlflow", "phoenix", "langfuse",
)  # fmt: skip
"""As in `playhead_receiver.importers.formats`, which is not loaded for ``--help``."""
MOST_NAMED = 20
"""Runs that are listed by name."""


@playhead_command("import", short_help="Import runs from files, also of other tools")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False)
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the files, if their content does not say it.",
)
@click.option("--partial", is_flag=True, help="Import the readable part of a damaged file.")
def command(session: Session, files: tuple[Path, ...], form: str | None, partial: bool) -> int:
    """Import runs from tapes, OTLP, or exports of other tools. Importing a file again has no effect.

    Formats: OTLP as JSON or protobuf; traces of Jaeger, Langfuse, LangSmith, MLflow and Phoenix; stored
    completions of OpenAI; HTTP archives (HAR); cassettes of vcrpy. A damaged file is refused, with the
    position of the damage. Exit status 1 if part of a file was not imported.
    """
    read = (incoming(file, form, partial=partial) for file in files)
    first = next(read)  # a file that is refused leaves no store
    before = _position(session)
    total, foreign, formats, rejected = Incoming(lambda: iter(())), set[str](), list[str](), 0
    with sender(session) as send:
        for file, (name, found) in zip(files, chain([first], read), strict=True):
            rejected += send(found)
            foreign |= set() if is_known(session.data_dir, file) else found.trace_ids
            total = total.joined(found)
            formats.append(name)
    names = names_of(session, total.trace_ids)
    new = _position(session) != before
    for id in foreign & names.keys() if new else ():
        carry_out(session, Mark(names[id], IMPORTED, on=True))
    if session.as_json:
        printed: PrintedImport = {
            "schema_version": 1,
            "runs": [{"name": name, "trace_id": id} for id, name in names.items()],
            "new": new,
            "facts": total.facts,
            "spans": total.spans,
            "rejected": rejected,
            "damage": total.damage or None,
            "formats": formats,
            "not_understood": dict(total.problems),
        }
        session.print_json(printed)
    else:
        _say(session, total, rejected, list(names.values()), new)
    return 1 if rejected or total.damage or total.problems else 0


def _say(session: Session, found: Incoming, rejected: int, names: list[str], new: bool) -> None:
    for name in names[:MOST_NAMED]:
        session.say(f"imported {name}" if new else f"{name} exists already")
    if len(names) > MOST_NAMED:
        session.say(f"and {len(names) - MOST_NAMED} more")
    if not names:
        session.say("the file contains no run")
    if len(names) > 1 or found.problems:
        session.say(f"{count(found.spans, 'span')} in {count(len(names), 'run')}{_left(found.problems)}")
    if rejected:
        session.say(f"{count(rejected, 'record')} were not imported")
    if found.damage:
        session.say(f"{visible(found.damage)}; the data before it was imported")
    for name in names[:1]:
        session.suggest(f"playhead show {name}")


def _left(problems: Counter[str]) -> str:
    """What was not understood, e.g. ``; 3 not understood: spans without a start``."""
    if not problems:
        return ""
    said = ", ".join(why if number == 1 else f"{number} {why}" for why, number in problems.most_common())
    return f"; {problems.total()} not understood: {said}"


def _position(session: Session) -> int:
    """How far the store's changes go: it moves only when something is new."""
    if session.has_no_store:
        return 0
    store = open_store(session.store, read_only=True)
    try:
        return store.position()
    finally:
        store.close()
