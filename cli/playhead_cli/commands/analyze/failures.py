"""``playhead failures`` and ``playhead like``: failed runs by cause, and runs like another one."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click
import msgspec

from playhead_analysis import read_path
from playhead_analysis.likeness import LikeRun, LikeRuns, runs_like
from playhead_cli.commands.analyze.flow import report_selection, select
from playhead_cli.completion.arguments import complete_query, complete_run
from playhead_cli.output.analysis.failures import content_lines, kind_lines, like_lines
from playhead_cli.session.options import limit_option, playhead_command, runs_option
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import parse_target, reading, searchable
from playhead_receiver.queries.failed_runs import failure_kinds
from playhead_receiver.queries.same_content import same_content
from playhead_replay import Run

if TYPE_CHECKING:
    from playhead_receiver.queries.run_paths import SelectedPaths


@playhead_command("failures", short_help="Group failed runs by cause")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@runs_option()
def command(session: Session, words: tuple[str, ...], runs: int) -> None:
    """Group the failed runs of QUERY by cause: type, tool, message and way. Most frequent first.

    QUERY selects runs as in playhead ls, failed and others: playhead failures agent:refund since:1d.
    What nearly all runs of a kind did and few of the others did is named as well.
    """
    selected = select(session, words, runs)
    with reading(session) as store:
        found = failure_kinds(store, selected)
    if session.as_json:
        session.print_json(msgspec.to_builtins(found))
        return
    print_lines(session, kind_lines(found), paged=True)
    report_selection(session, selected, runs)
    if found.kinds:
        session.suggest(f"playhead show {found.kinds[0].runs[0]}")


@playhead_command("like", short_help="List runs like another one")
@click.argument("target", metavar="RUN[:STEP]", shell_complete=complete_run)
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@limit_option(20, "runs")
@runs_option("runs to compare with")
def like_command(session: Session, target: str, words: tuple[str, ...], limit: int, runs: int) -> None:
    """List the runs of QUERY that are most like RUN, with what they have in common.

    Runs are compared by the order of their steps, tools, calls with equal arguments, and failures.
    Without QUERY, the runs of the same agent are compared. All runs that read the same content are
    listed, and the calls with which they followed an instruction in it; with STEP, only those.
    """
    asked = parse_target(target)
    like: list[LikeRun] = []
    selected: SelectedPaths | None = None
    with closing(searchable(session)) as store:
        run = Run.load(store, asked.run)
        step = find_point(run, asked.point).step if asked.point else None
        contents, same = same_content(store, run, None if step is None else step.number)
        path = read_path(store, asked.run)
    if step is None:
        selected = select(session, words or (f'agent:"{path.agent}"',), runs)
        like = runs_like(path, selected.paths, limit)
    found = LikeRuns(run=path.name, like=like, contents=contents, same_content=same)
    if session.as_json:
        session.print_json(msgspec.to_builtins(found))
        return
    if not like and not same:
        session.say(f"no other runs match: playhead like {path.name} QUERY")
        return
    print_lines(session, [*(like_lines(found) if like else ()), *content_lines(found)], paged=True)
    if selected is not None:
        report_selection(session, selected, runs)
    session.suggest(f"playhead diff {path.name} {(like or same)[0].name}")
