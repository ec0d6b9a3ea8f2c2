"""``playhead golden``: keep runs as regression tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from playhead_cli.completion.arguments import complete_golden, complete_run
from playhead_cli.output.columns import in_columns
from playhead_cli.output.words import count, size
from playhead_cli.running.from_spans import is_only_spans, rebuilt_run, with_named_program
from playhead_cli.running.program import Program, program_option
from playhead_cli.session.options import CommandGroup, option_groups, playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.store_changes import confirm_deletion
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_cli.targets.trust import is_foreign, note_known, require_trust, trust_option
from playhead_core.errors import PlayheadError, UsageError
from playhead_core.file_names import inside
from playhead_replay.goldens import Purpose, read_stored, write_golden
from playhead_replay.goldens.conditions import read_condition, unfulfilled
from playhead_replay.goldens.observed import ObservedRun
from playhead_replay.goldens.renewal import renew

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import (
        PrintedGolden,
        PrintedGoldenItem,
        PrintedGoldens,
        PrintedRemoval,
        PrintedRenewedGolden,
        PrintedUpdate,
    )
    from playhead_replay.goldens.renewal import Renewed

FOLDER = Path("tests") / "goldens"
COLUMNS = ("NAME", "PROGRAM", "STEPS", "SIZE", "EXPECTS", "DESCRIPTION")

folder_option = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="Folder of goldens: goldens/ next to the test.",
)


@dataclass(frozen=True, slots=True)
class GoldenOptions:
    """Options for how to store a golden and its conditions."""

    name: str
    folder: Path
    description: str
    expect: tuple[str, ...]
    compressed: bool
    force: bool
    program: str
    """Command of a run that names none."""
    cwd: str


@click.group("golden", cls=CommandGroup, short_help="Keep runs as regression tests")
def command() -> None:
    """Keep runs as regression tests. ``pytest`` replays them: see the fixture ``tape``."""


@playhead_command("add", short_help="Save a run as a golden")
@click.argument("target", metavar="[RUN]", required=False, shell_complete=complete_run)
@click.option("--name", required=True, help="Name of the golden, which the test uses.")
@folder_option
@click.option("--description", default="", help="Description, in one sentence.")
@click.option(
    "--expect",
    multiple=True,
    metavar="CONDITION",
    help="Condition to meet instead of the same outcome; may be repeated: printed~TEXT, "
    "answer~TEXT, calls.TOOL=1, tool.TOOL.PATH=VALUE, response.PATH=VALUE, "
    "cost<=0.05.",
)
@program_option
@click.option("--cwd", default="", help="Working folder of that program. Default: here.")
@click.option("--compressed", is_flag=True, help="Write it compressed instead of as text.")
@click.option("--force", is_flag=True, help="Replace an existing golden.")
@option_groups(keeping=GoldenOptions)
def add(session: Session, target: str | None, keeping: GoldenOptions) -> None:
    """Save a run as a golden: one file to commit to a repository and to review.

    For a failed run, use --expect: its test fails until the program is fixed.
    """
    for text in keeping.expect:
        read_condition(text)
    file = f"{keeping.name}.tape{'.gz' if keeping.compressed else ''}"
    inside(keeping.folder, file)
    path = keeping.folder / file
    if path.exists() and not keeping.force:
        raise UsageError(
            f"a golden exists at {path}", hint=f"playhead golden add RUN --name {keeping.name} --force"
        )
    wanted = parse_target(target)
    purpose = Purpose(keeping.description, keeping.expect)
    with opened_run(session, wanted) as run:
        foreign = not keeping.program and is_foreign(session, wanted, run)
        around = Program("", keeping.cwd, (), (), trust=False)
        notes: list[str] = []
        if is_only_spans(run):
            run, notes = rebuilt_run(session, run, keeping.program, around, golden=True)
        elif keeping.program:
            run = with_named_program(run, keeping.program, around)
        made = write_golden(path, run, compressed=keeping.compressed, purpose=purpose)
        wrong = unfulfilled(ObservedRun(run), keeping.expect)
    if not foreign:
        note_known(session.data_dir, path)
    if session.as_json:
        printed: PrintedGolden = {
            "schema_version": 1,
            "path": str(made.path),
            "size_bytes": made.size_bytes,
            "redacted": made.redacted,
            "edited": made.edited,
            "rebuilt": made.rebuilt,
            "unfulfilled": [{"condition": str(one), "found": found} for one, found in wrong],
        }
        session.print_json(printed)
        return
    for line in notes:
        session.say(line)
    session.say(f"wrote {made.path}, {size(made.size_bytes)}")
    if made.rebuilt:
        answers = count(made.rebuilt, "answer")
        session.say(f"semantic, never exact: {answers} rebuilt from spans")
    if made.redacted:
        session.say(f"redacted {count(made.redacted, 'value')}")
    if made.edited:
        session.say(f"edited at a fork or by an operator, not by the program: {', '.join(made.edited)}")
        session.say('a test fails where an edit answers, unless it says tape.replay(…, edited="allow")')
    for (_, found), same in groupby(wrong, lambda one: (one[0].subject, one[1])):
        conditions = ", ".join(str(condition) for condition, _ in same)
        session.say(f"this run does not meet: {conditions}; it has {found}")
    if wrong:
        session.say("the test fails until the program is fixed")
    session.suggest(f"pytest -k {keeping.name}")


@playhead_command("ls", short_help="List goldens")
@folder_option
def ls(session: Session, folder: Path) -> None:
    """List the goldens in a folder and its subfolders, with their descriptions."""
    found = [_described(folder, path) for path in _goldens_in(folder)]
    if session.as_json:
        printed: PrintedGoldens = {"schema_version": 1, "goldens": found}
        session.print_json(printed)
        return
    if not found:
        session.say(f"no goldens in {folder}")
        session.suggest("playhead golden add RUN --name NAME")
        return
    _print_table(session, found)


@playhead_command("rm", short_help="Remove goldens")
@click.argument("names", metavar="NAME…", nargs=-1, required=True, shell_complete=complete_golden)
@folder_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(session: Session, names: tuple[str, ...], folder: Path, yes: bool) -> int:
    """Remove goldens. The tests that replay them then fail."""
    paths = [_path_of(folder, name) for name in names]
    if not yes:
        again = f"playhead golden rm {' '.join(names)} --yes"
        if not confirm_deletion(
            session, [str(path) for path in paths], count(len(paths), "golden"), again
        ):
            return 1
    for path in paths:
        path.unlink()
        if path.parent != folder and not any(path.parent.iterdir()):
            path.parent.rmdir()
    if session.as_json:
        printed: PrintedRemoval = {"schema_version": 1, "removed": [str(path) for path in paths]}
        session.print_json(printed)
        return 0
    for path in paths:
        session.say(f"removed {path}")
    return 0


@playhead_command("update", short_help="Update goldens whose outcome has changed")
@click.argument("names", metavar="[NAME…]", nargs=-1, shell_complete=complete_golden)
@folder_option
@click.option("--python", default="", help="Python interpreter of the agent. Default: the recorded one.")
@trust_option
def update(session: Session, names: tuple[str, ...], folder: Path, python: str, trust: bool) -> int:
    """Replay goldens, all or those named, and update those whose outcome has changed.

    Nothing runs live. A golden is not updated if its program sends other requests, or if its
    conditions are not met; the exit status is then 1.
    """
    paths = [_path_of(folder, name) for name in names] or _goldens_in(folder)
    done: list[Renewed] = []
    for path in paths:
        target = parse_target(str(path))
        with opened_run(session, target) as run:
            foreign = require_trust(session, target, run, trust=trust, live=False)
        session.progress(f"replaying {path}")
        done.append(renew(path, python, foreign=foreign))
        note_known(session.data_dir, path)
    if session.as_json:
        said: list[PrintedRenewedGolden] = [
            {"path": str(one.path), "updated": one.updated, "problem": one.problem} for one in done
        ]
        printed: PrintedUpdate = {"schema_version": 1, "goldens": said}
        session.print_json(printed)
    else:
        for one in done:
            state = "updated" if one.updated else "left as it is" if one.problem else "the same"
            session.say(f"{one.path}: {state}" + (f"; {one.problem}" if one.problem else ""))
    return 1 if any(one.problem for one in done) else 0


for one in (add, ls, remove, update):
    command.add_command(one)


def _goldens_in(folder: Path) -> list[Path]:
    found = {*folder.rglob("*.tape"), *folder.rglob("*.tape.gz")}
    return sorted(path for path in found if path.is_file())


def _path_of(folder: Path, name: str) -> Path:
    """Return the file of a golden. `UsageError` if there is none, `PathOutside`."""
    inside(folder, f"{name}.tape")
    for suffix in (".tape", ".tape.gz"):
        path = folder / f"{name}{suffix}"
        if path.is_file():
            return path
    raise UsageError(f"no golden {name} in {folder}", hint="playhead golden ls")


def _described(folder: Path, path: Path) -> PrintedGoldenItem:
    """Return a golden as an object of plain values; ``problem``: why it cannot be read."""
    name = str(path.relative_to(folder)).removesuffix(".gz").removesuffix(".tape")
    found: PrintedGoldenItem = {
        "name": name,
        "path": str(path),
        "size_bytes": path.stat().st_size,
        "program": None,
        "steps": None,
        "description": "",
        "expect": [],
        "problem": None,
    }
    try:
        stored = read_stored(path)
        found["program"] = str(stored.run.command)
        found["steps"] = len(stored.run.steps)
        found["description"] = stored.purpose.description
        found["expect"] = list(stored.purpose.expect)
    except PlayheadError as problem:
        found["problem"] = problem.what
    return found


def _print_table(session: Session, found: list[PrintedGoldenItem]) -> None:
    rows = [
        (
            one["name"],
            one["program"] or "",
            "" if one["steps"] is None else str(one["steps"]),
            size(one["size_bytes"]),
            ", ".join(one["expect"]),
            one["problem"] or one["description"],
        )
        for one in found
    ]
    shown = [at for at in range(len(COLUMNS)) if at < 4 or any(row[at] for row in rows)]
    head, *lines = in_columns([[row[at] for at in shown] for row in (COLUMNS, *rows)])
    print_lines(session, [Text(head, style="dim"), *map(Text, lines)])
