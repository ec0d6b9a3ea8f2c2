"""``playhead agents``: which agents asked which others, and where they waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from playhead_analysis.agents.communications import communications_of_runs
from playhead_analysis.agents.graph import graph_of
from playhead_analysis.diagrams import dot, mermaid
from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.analysis.agents import agent_lines
from playhead_cli.session.options import playhead_command, runs_option
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import opened_run, parse_target, reading
from playhead_core.errors import RunUnknown
from playhead_receiver.queries.run_paths import matching
from playhead_receiver.storage.api.store import OF_ONE_RUN
from playhead_replay import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMATS = ("text", "mermaid", "sequence", "dot")


@playhead_command("agents", short_help="Show which agents asked which others")
@click.argument("targets", metavar="[RUN]...", nargs=-1, shell_complete=complete_run)
@click.option("--query", metavar="QUERY", help="Add the runs of a query: --query session:42.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="The graph for Mermaid or Graphviz (dot); the requests in order as a Mermaid sequence diagram.",
)
@runs_option()
def command(session: Session, targets: tuple[str, ...], query: str | None, form: str, runs: int) -> None:
    """Show which agents asked which others in RUN, how, how often, and how long they waited.

    Agents are found from their spans, hand-offs, tools, MCP, requests between recorded services, child
    processes and playhead.message. OWN is the time in which the asked agent did not wait for others; the
    bottleneck is the edge with most of it. Several runs are shown as one graph.
    """
    found = communications_of_runs(_opened(session, targets, query, runs))
    graph = graph_of(found)
    if session.as_json:
        session.print_json(msgspec.to_builtins(graph))
    elif form == "mermaid":
        click.echo(mermaid.agent_chart(graph), nl=False)
    elif form == "dot":
        click.echo(dot.agent_graph(graph), nl=False)
    elif form == "sequence":
        click.echo(mermaid.agent_sequence([one for some in found.values() for one in some]), nl=False)
    else:
        print_lines(session, agent_lines(graph), paged=True)
        if graph.bottleneck is not None:
            session.suggest(f"playhead show {graph.edges[graph.bottleneck].example}")


def _opened(session: Session, targets: tuple[str, ...], query: str | None, limit: int) -> Iterator[Run]:
    """Yield the runs of the command line one by one; the latest run if none is named."""
    for target in targets or (("last",) if query is None else ()):
        with opened_run(session, parse_target(target)) as run:
            yield run
    if query is None:
        return
    with reading(session) as store:
        for summary in matching(store, query, limit):
            try:
                yield Run.load(store, summary.trace_id)
            except RunUnknown:  # deleted in the meantime
                continue
            except OF_ONE_RUN:
                session.say(f"{summary.name} cannot be read: playhead verify")
