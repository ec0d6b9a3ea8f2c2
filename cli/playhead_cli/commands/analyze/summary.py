"""``playhead summary`` and ``playhead diagram``: one run, in few lines or as a diagram."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import click
import msgspec

from playhead_analysis import path_of
from playhead_analysis.diagrams.of_run import draw
from playhead_analysis.summaries.summary import summarize
from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.analysis.summary import summary_lines
from playhead_cli.running.model_words import words_of
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_core.errors import UsageError
from playhead_replay.timeline.tool_calls import tool_calls_of

if TYPE_CHECKING:
    from playhead_analysis import RunPath
    from playhead_analysis.diagrams.of_run import DiagramFormat

RANGE = re.compile(r"(\d{1,9})(?:[-–](\d{1,9}))?\Z")


@playhead_command("summary", short_help="Summarize a run of any length in few lines")
@click.argument("target", metavar="[RUN[:FIRST-LAST]]", required=False, shell_complete=complete_run)
@click.option(
    "--lines",
    type=click.IntRange(5, 1000),
    default=40,
    show_default=True,
    help="How many lines at most.",
)
@click.option(
    "--words", is_flag=True, help="Add a description of the lines by the model PLAYHEAD_SUMMARY_MODEL."
)
def command(session: Session, target: str | None, lines: int, words: bool) -> None:
    """Summarize a run in few lines: phases, repeats, steps, failures.

    Each line begins with the numbers of its steps; playhead summary RUN:12-40 opens it. The lines are
    computed: the same run gives the same lines. With --words, a model describes them. It gets only these
    lines: no message, argument or result.
    """
    asked = parse_target(target)
    found = RANGE.match(asked.point or "1")
    if found is None:
        raise UsageError(f"{asked.point} is not a range of steps", hint="playhead summary RUN:12-40")
    first, last = int(found[1]), int(found[2] or found[1])
    path = _path(session, asked.run)
    summary = summarize(path, first, last, lines) if asked.point else summarize(path, lines=lines)
    if not summary.lines and summary.steps:
        raise UsageError(
            f"{summary.run} has no steps {asked.point}", hint=f"playhead summary {asked.run}"
        )
    if words:
        text = "\n".join(line.plain for line in summary_lines(summary))
        summary = replace(summary, words=words_of(text, session.settings))
    if session.as_json:
        session.print_json(msgspec.to_builtins(summary))
        return
    print_lines(session, summary_lines(summary), paged=True)
    group = next((line for line in summary.lines if line.kind != "step"), None)
    if group is not None:
        session.suggest(f"playhead summary {summary.run}:{group.first}-{group.last}")


@playhead_command("diagram", short_help="Draw a run as text for Mermaid or Graphviz")
@click.argument("target", metavar="[RUN]", required=False, shell_complete=complete_run)
@click.option(
    "--format",
    "form",
    type=click.Choice(["sequence", "states", "flow", "dot", "agents", "messages"]),
    default="sequence",
    show_default=True,
    help="Mermaid: who called whom, phases, steps, agents, or requests between agents; dot: steps for"
    " Graphviz.",
)
def diagram_command(session: Session, target: str | None, form: DiagramFormat) -> None:
    """Draw a run as text: a Mermaid sequence, state or flow diagram, or a Graphviz graph.

    GitHub, GitLab and many editors draw Mermaid text. playhead flow draws many runs.
    """
    with opened_run(session, parse_target(target)) as run:
        diagram = draw(run, form)
    if session.as_json:
        session.print_json(msgspec.to_builtins(diagram))
    else:
        click.echo(diagram.text, nl=False)


def _path(session: Session, run: str) -> RunPath:
    """Return the path of a run with the arguments and errors of its tool calls."""
    with opened_run(session, parse_target(run)) as loaded:
        return path_of(loaded, tool_calls_of(loaded))
