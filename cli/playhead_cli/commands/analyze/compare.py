"""``playhead compare``: whether two groups of runs differ, for people and for continuous integration."""

from __future__ import annotations

import click
import msgspec

from playhead_analysis.comparison.versions import compare
from playhead_cli.commands.analyze.flow import report_selection, select
from playhead_cli.completion.arguments import complete_query
from playhead_cli.output.analysis.compare import comparison_lines
from playhead_cli.session.options import playhead_command, runs_option
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError

EXIT_STATUS = {"no difference found": 0, "difference": 1, "too few runs": 3}


@playhead_command("compare", short_help="Test whether two groups of runs differ")
@click.argument("words", metavar="[QUERY…] LEFT RIGHT", nargs=-1, shell_complete=complete_query)
@runs_option("runs of each group to read")
@click.option("--all", "everything", is_flag=True, help="Include what does not differ.")
def command(session: Session, words: tuple[str, ...], runs: int, everything: bool) -> int:
    """Test whether two groups of runs differ in outcome, tools, failures, order, cost or time.

    The last two arguments select the groups, those before select from both, as in playhead ls:
    playhead compare agent:refund version:7 version:8. p is adjusted for the number of measures: two
    equal groups differ in at most 5 of 100 comparisons. Exit status: 0 no difference found, 1 a
    difference, 3 too few runs to know.
    """
    if len(words) < 2:
        raise UsageError(
            "compare takes two groups of runs", hint="playhead compare agent:NAME version:1 version:2"
        )
    *common, left, right = words
    sides = [select(session, (*common, side), runs) for side in (left, right)]
    found = compare(sides[0].paths, sides[1].paths)
    if session.as_json:
        session.print_json(msgspec.to_builtins(found))
        return EXIT_STATUS[found.verdict]
    print_lines(session, comparison_lines(found, (left, right), everything), paged=True)
    for side in sides:
        report_selection(session, side, runs)
    return EXIT_STATUS[found.verdict]
