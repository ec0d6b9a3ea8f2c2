"""``playhead diff`` and ``playhead variability``: compare two runs, or the paths of many."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from playhead_cli.completion.arguments import complete_agent, complete_run
from playhead_cli.output.comparison import diff_lines, diff_page, variability_lines
from playhead_cli.session.options import limit_option, option_groups, playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_moment
from playhead_cli.targets.run_argument import opened_run, parse_target, reading
from playhead_core.errors import UsageError
from playhead_receiver.storage.values.run_summaries import Query
from playhead_replay.diff import diff, variability
from playhead_replay.tape_files.tape_file import written


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """Options for what to compare and how much to show."""

    states: bool
    everything: bool


@playhead_command("diff", short_help="Compare two runs")
@click.argument("left", metavar="RUN", shell_complete=complete_run)
@click.argument("right", metavar="RUN", shell_complete=complete_run)
@click.option("--state", "states", is_flag=True, help="Compare the states at two points, RUN:POINT.")
@click.option("--all", "everything", is_flag=True, help="Include repetitions of earlier differences.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the comparison as an HTML page.",
)
@option_groups(how=DiffOptions)
def command(session: Session, left: str, right: str, html: Path | None, how: DiffOptions) -> int:
    """Compare two runs step by step, or their states at two points.

    Steps are matched by their requests, lane by lane; messages repeated from the history are shown
    once. --state compares conversation, states, files and output at two points. Exit status: 0 no
    difference, 1 a difference.
    """
    if how.states:
        return _compare_moments(session, left, right)
    with ExitStack() as opened:
        runs = [opened.enter_context(opened_run(session, parse_target(name))) for name in (left, right)]
        found = diff(*runs)
    if html is not None:
        with written(html) as file:
            file.write(diff_page(found).encode())
        session.say(f"wrote {html}")
    if session.as_json:
        session.print_json(found.to_json())
    elif html is None:
        print_lines(session, diff_lines(found, how.everything), paged=True)
        if found.first is not None and found.first.left is not None:
            session.suggest(f"playhead show {found.left}:{found.first.left}")
    return 0 if found.identical else 1


def _compare_moments(session: Session, left: str, right: str) -> int:
    with ExitStack() as opened:
        targets = [parse_target(name) for name in (left, right)]
        runs = [opened.enter_context(opened_run(session, target)) for target in targets]
        from playhead_cli.output.step.moment import change_lines, changes_object
        from playhead_replay.timeline import differences

        first, second = (
            find_moment(run, target.point)[0] for run, target in zip(runs, targets, strict=True)
        )
        changes = differences(first, second)
        if session.as_json:
            session.print_json(changes_object(first, second, changes))
        else:
            print_lines(session, change_lines(changes), paged=True)
    return 1 if changes else 0


@playhead_command("variability", short_help="Compare the paths that many runs took")
@click.argument("targets", metavar="[RUN…]", nargs=-1, shell_complete=complete_run)
@click.option(
    "--agent",
    shell_complete=complete_agent,
    help="Compare the latest runs of this agent.",
)
@limit_option(20, "runs", least=2)
def variability_command(
    session: Session, targets: tuple[str, ...], agent: str | None, limit: int
) -> None:
    """Compare the paths of some runs: distinct paths, where they diverge, and how far.

    For hundreds of runs, with frequencies, times and failures: playhead flow QUERY.
    """
    names = list(targets) or _latest(session, agent, limit)
    if len(names) < 2:
        raise UsageError(
            "nothing to compare: name two runs or more",
            hint="playhead variability RUN RUN, or playhead variability --agent NAME",
        )
    with ExitStack() as opened:
        runs = [opened.enter_context(opened_run(session, parse_target(name))) for name in names]
        found = variability(runs)
    if session.as_json:
        session.print_json(found.to_json())
        return
    print_lines(session, variability_lines(found), paged=True)
    if found.forks:
        ways = list(found.forks[0].ways.values())
        session.suggest(f"playhead diff {ways[0][0]} {ways[1][0]}")


def _latest(session: Session, agent: str | None, limit: int) -> list[str]:
    if agent is None:
        return []
    with reading(session) as store:
        return [run.trace_id for run in store.runs(Query(agent=agent, limit=limit))][::-1]
