"""``playhead golden``: keep a run as a regression test."""

from __future__ import annotations

from pathlib import Path

import click

from playhead_cli.options import Verbs, verb
from playhead_cli.session import Session
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_cli.targets.trust import is_foreign, note_known
from playhead_cli.views.words import count, size
from playhead_semconv.errors import UsageError
from playhead_semconv.untrusted.safe_paths import inside

SCHEMA_VERSION = 1
FOLDER = Path("tests") / "goldens"


@click.group("golden", cls=Verbs, short_help="keep runs as regression tests")
def command() -> None:
    """Keep runs as regression tests. ``pytest`` replays them: see the fixture ``tape``."""


@verb("add", short_help="write a run as a golden")
@click.argument("target", metavar="[RUN]", required=False)
@click.option("--name", required=True, help="Name of the golden: what the test replays.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="Where goldens lie: the folder goldens beside the test.",
)
@click.option("--compressed", is_flag=True, help="Packed instead of text.")
@click.option("--force", is_flag=True, help="Replace a golden of that name.")
def add(
    session: Session, target: str | None, name: str, folder: Path, compressed: bool, force: bool
) -> None:
    """Write a run as a golden: one file that a repository keeps and people can review."""
    from playhead_replay.goldens import write_golden

    file = f"{name}.tape{'.gz' if compressed else ''}"
    inside(folder, file)
    path = folder / file
    if path.exists() and not force:
        raise UsageError(
            f"there is a golden at {path}", hint=f"playhead golden add RUN --name {name} --force"
        )
    wanted = parse_target(target)
    with opened_run(session, wanted) as run:
        foreign = is_foreign(session, wanted, run)
        made = write_golden(path, run, compressed=compressed)
    if not foreign:
        note_known(session.data_dir, path)
    if session.as_json:
        session.print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "path": str(made.path),
                "size_bytes": made.size_bytes,
                "redacted": made.redacted,
                "edited": made.edited,
            }
        )
        return
    session.say(f"wrote {made.path}, {size(made.size_bytes)}")
    if made.redacted:
        session.say(f"redacted {count(made.redacted, 'value')}")
    if made.edited:
        session.say(f"edited at a fork, not by the program: {', '.join(made.edited)}")
        session.say('a test fails where an edit answers, unless it says tape.replay(…, edited="allow")')
    session.suggest(f"pytest -k {name}")


command.add_command(add)
