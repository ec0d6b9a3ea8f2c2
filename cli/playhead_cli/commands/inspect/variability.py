"""``playhead variability``: compare the paths that many runs took."""

from __future__ import annotations

from contextlib import ExitStack

import click

from playhead_cli.completion.arguments import complete_agent, complete_run
from playhead_cli.session.options import limit_option, playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import opened_run, parse_target, reading
from playhead_core.errors import UsageError


@playhead_command("variability", short_help="Compare the paths that many runs took")
@click.argument("targets", metavar="[RUN…]", nargs=-1, shell_complete=complete_run)
@click.option(
    "--agent",
    shell_complete=complete_agent,
    help="Compare the latest runs of this agent.",
)
@limit_option(20, "runs", least=2)
def command(session: Session, targets: tuple[str, ...], agent: str | None, limit: int) -> None:
    """Compare the paths of many runs: distinct paths, where they diverge, and how far."""
    from playhead_replay.diff import variability

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
    from playhead_cli.output.comparison import variability_lines

    print_lines(session, variability_lines(found), paged=True)
    if found.forks:
        ways = list(found.forks[0].ways.values())
        session.suggest(f"playhead diff {ways[0][0]} {ways[1][0]}")


def _latest(session: Session, agent: str | None, limit: int) -> list[str]:
    from playhead_receiver.storage.values.run_summaries import Query

    if agent is None:
        return []
    with reading(session) as store:
        return [run.trace_id for run in store.runs(Query(agent=agent, limit=limit))][::-1]
