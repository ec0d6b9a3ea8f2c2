"""``playhead flow``: which ways many runs take."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from playhead_analysis.diagrams import dot, mermaid, process_logs
from playhead_analysis.flows.flow import flow_of
from playhead_cli.completion.arguments import complete_query
from playhead_cli.output.analysis.flow import flow_lines
from playhead_cli.session.options import limit_option, option_groups, playhead_command, runs_option
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import reading, searchable
from playhead_core.errors import UsageError
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.run_paths import select_paths
from playhead_receiver.storage import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead_analysis import RunPath
    from playhead_analysis.flows.flow import Flow
    from playhead_receiver.queries.run_paths import SelectedPaths

FORMATS = ("text", "mermaid", "dot", "xes", "ocel")


@dataclass(frozen=True, slots=True)
class FlowOptions:
    """Options for what a flow shows."""

    limit: int
    runs: int
    margin: float
    rare: bool
    format: Literal["text", "mermaid", "dot", "xes", "ocel"]


@playhead_command("flow", short_help="Show which ways many runs take")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@limit_option(20, "distinct ways")
@runs_option()
@click.option(
    "--margin",
    type=click.FloatRange(0.001, 0.5),
    default=0.05,
    show_default=True,
    help="Margin of error for the number of runs needed.",
)
@click.option("--rare", is_flag=True, help="Include edges that are too rare to tell them from noise.")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="The graph for Mermaid or Graphviz (dot); the runs as a process log: XES or OCEL 2.0.",
)
@option_groups(how=FlowOptions)
def command(session: Session, words: tuple[str, ...], how: FlowOptions) -> None:
    """Show which ways the runs of QUERY take, how often, how long, and where they part.

    QUERY selects runs as in playhead ls: playhead flow agent:refund since:7d. A decision is a point at
    which a model chose; at a variation, no model did. NEEDED is how many runs are needed to know the
    shares of a point.
    """
    selected = select(session, words, how.runs)
    flow = flow_of(selected.paths, how.limit, how.margin, selected.truncated)
    if session.as_json:
        session.print_json(msgspec.to_builtins(flow))
        return
    if how.format != "text":
        _write(selected.paths, flow, how)
        return
    if how.rare:
        flow = replace(flow, edges=[replace(edge, is_rare=False) for edge in flow.edges])
    print_lines(session, flow_lines(flow), paged=True)
    report_selection(session, selected, how.runs)
    if flow.ways and flow.distinct_ways > 1:
        session.suggest(f"playhead diff {flow.ways[0].examples[0]} {flow.ways[1].examples[0]}")


def _write(paths: Sequence[RunPath], flow: Flow, how: FlowOptions) -> None:
    """Write the graph of a flow, or a process log of its runs, to stdout."""
    match how.format:
        case "mermaid":
            click.echo(mermaid.flowchart(flow, how.rare), nl=False)
        case "dot":
            click.echo(dot.graph(flow, how.rare), nl=False)
        case "xes":
            for line in process_logs.xes(paths):
                click.echo(line)
        case _:
            click.echo(msgspec.json.encode(process_logs.ocel(paths)))


def select(
    session: Session, words: tuple[str, ...], runs: int, *, with_states: bool = False
) -> SelectedPaths:
    """Return the paths of the runs of a query. `UsageError` if there are none."""
    query = " ".join(words)
    asked = read_language(query, Query())
    indexed = asked.text or asked.query.attributes
    with closing(searchable(session)) if indexed else reading(session) as store:
        selected = select_paths(store, query, runs, with_states=with_states)
    if not selected.paths:
        match = f" match {query}" if query else ""
        raise UsageError(f"no runs with steps in {session.store_name}{match}", hint="playhead ls --all")
    return selected


def report_selection(session: Session, selected: SelectedPaths, runs: int) -> None:
    """Say which runs an analysis does not have."""
    if selected.truncated:
        session.say(f"these are the newest {runs} runs: --runs reads more, a query selects fewer")
    if selected.unreadable:
        names = ", ".join(selected.unreadable[:3])
        session.say(f"{len(selected.unreadable)} runs cannot be read ({names}): playhead verify")
