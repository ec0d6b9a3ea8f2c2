"""``playhead export``: export a run as a tape, as OTLP JSON lines or as a cassette of vcrpy."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.words import count, size
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_cli.store_changes import note
from playhead_cli.targets.run_argument import Target, parse_target, reading
from playhead_cli.targets.trust import is_foreign, note_known
from playhead_core.errors import UsageError
from playhead_core.file_names import inside
from playhead_core.untrusted.shown_text import visible
from playhead_receiver.archive.run_files import Material, write_lines
from playhead_receiver.integrity.signing import Signing, private_key
from playhead_replay.tape_files.tape_file import written

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedExport
    from playhead_replay.tape_files.tape_file import Keeper

    Signs = Callable[[Keeper, str], Keeper]

ENDINGS = {"tape": ".tape", "otlp": ".otlp.jsonl", "vcr": ".yaml"}
STDOUT = "-"


@playhead_command("export", short_help="Export a run as a tape, OTLP JSON lines or a cassette")
@click.argument("target", metavar="[RUN]", required=False, shell_complete=complete_run)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Output file; - is stdout. Default: the run's name, in this folder.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(ENDINGS)),
    help="tape (default), otlp: OTLP JSON lines for a Collector, vcr: a cassette of vcrpy.",
)
@click.option(
    "--sign",
    "key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Sign the tape with this Ed25519 private key in the format of ssh-keygen.",
)
def command(
    session: Session, target: str | None, output: str | None, form: str | None, key: Path | None
) -> None:
    """Export a run with all its processes and spans: a tape, or OTLP JSON lines.

    A file name that ends in .gz is compressed. A tape can be replayed without a store. A cassette has
    only the HTTP requests and their answers, as YAML, or as JSON if its name ends in .json.
    """
    form = _form(form, output)
    signing = None if key is None else _signing(key, form)
    with _material(session, parse_target(target)) as found:
        run = found.run
        path = output or inside(".", f"{run.name}{ENDINGS[form]}").name
        if path == STDOUT:
            if form != "otlp":
                raise UsageError(
                    "a tape or cassette must be written to a file",
                    hint="playhead export RUN -o run.tape",
                )
            for line in found.lines():
                sys.stdout.buffer.write(visible(line.decode()).encode() + b"\n")
            return
        size_bytes = _write(found, Path(path), form, signing)
        if not is_foreign(session, parse_target(target), run):
            note_known(session.data_dir, Path(path))
    if session.as_json:
        printed: PrintedExport = {
            "schema_version": 1,
            "run": run.name,
            "file": os.path.abspath(path),
            "format": form,
            "size_bytes": size_bytes,
        }
        session.print_json(printed)
        return
    processes = f"{len(run.tapes)} processes" if len(run.tapes) > 1 else "1 process"
    session.say(f"wrote {path}: {processes}, {count(len(run.steps), 'step')}, {size(size_bytes)}")
    session.suggest(f"playhead {'replay' if form == 'tape' else 'import'} {path}")


def _form(form: str | None, output: str | None) -> Literal["tape", "otlp", "vcr"]:
    if form in ("otlp", "vcr"):
        return form
    return "otlp" if form is None and output and ".jsonl" in output else "tape"


@contextmanager
def _material(session: Session, target: Target) -> Generator[Material]:
    if target.is_file or Path(target.run).is_file():
        yield Material.of_file(Path(target.run))
        return
    with reading(session) as store:
        found = Material.of_store(store, target.run)
        note(session, "playhead export", "export", found.run.trace_id)
        yield found


def _signing(path: Path, form: str) -> Signs:
    """Return a function that signs a tape with the key in ``path``. `UsageError`."""
    if form != "tape":
        raise UsageError("only a tape can be signed", hint="playhead export RUN --sign KEY -o run.tape")
    key = private_key(path, lambda: _passphrase(path))
    return lambda keeper, trace_id: Signing(keeper, key, trace_id)


def _passphrase(path: Path) -> str:
    if not sys.stdin.isatty():
        raise UsageError(f"the key {path} has a passphrase, and there is no terminal to ask on")
    return click.prompt(f"passphrase of {path}", hide_input=True, err=True)


def _write(found: Material, path: Path, form: str, signing: Signs | None) -> int:
    try:
        if form == "vcr":
            from playhead_receiver.importers.cassettes import cassette_of

            data, _ = cassette_of(found.run.exchanges, as_json=path.suffix == ".json")
            with written(path) as file:
                file.write(data)
            return len(data)
        return found.write_tape(path, signing) if form == "tape" else write_lines(path, found.lines())
    except OSError as problem:
        raise UsageError(f"{path} cannot be written", cause=str(problem)) from problem
