"""``playhead diff``: two runs beside each other."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from playhead_cli.completing.arguments import complete_run
from playhead_cli.options import verb
from playhead_cli.printing import print_lines
from playhead_cli.session import Session
from playhead_cli.targets.run_argument import opened_run, parse_target


@verb("diff", short_help="compare two runs: where they part, and how")
@click.argument("left", metavar="RUN", shell_complete=complete_run)
@click.argument("right", metavar="RUN", shell_complete=complete_run)
@click.option("--all", "everything", is_flag=True, help="What only repeats an earlier difference, too.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the comparison as one HTML page.",
)
def command(session: Session, left: str, right: str, everything: bool, html: Path | None) -> int:
    """Compare two runs step by step.

    Steps are paired by what they ask, lane by lane; what a history repeats is said once. Exit status: 0
    nothing differs, 1 something does.
    """
    from playhead_replay.diff import diff
    from playhead_replay.tape_files.whole_files import written

    with ExitStack() as opened:
        runs = [opened.enter_context(opened_run(session, parse_target(name))) for name in (left, right)]
        found = diff(*runs)
    if html is not None:
        from playhead_cli.views.page import diff_page

        with written(html) as file:
            file.write(diff_page(found).encode())
        session.say(f"wrote {html}")
    if session.as_json:
        session.print_json(found.to_json())
    elif html is None:
        from playhead_cli.views.comparison import diff_lines

        print_lines(session, diff_lines(found, everything), paged=True)
        if found.first is not None and found.first.left is not None:
            session.suggest(f"playhead show {found.left}:{found.first.left}")
    return 0 if found.identical else 1
