"""``playhead conform`` and ``playhead workflow``: check runs against a workflow, and discover one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from playhead_analysis.workflows.conformance import conformance_of
from playhead_analysis.workflows.definition import read_workflow, workflow_of
from playhead_analysis.workflows.discovery import discover
from playhead_cli.commands.analyze.flow import report_selection, select
from playhead_cli.completion.arguments import complete_query
from playhead_cli.output.analysis.conformance import alignment_lines, conformance_lines, run_lines
from playhead_cli.output.words import count
from playhead_cli.session.options import CommandGroup, playhead_command, runs_option
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError
from playhead_replay.tape_files.tape_file import written

if TYPE_CHECKING:
    from playhead_cli.json_output.analysis import PrintedWorkflow

STATUSES = {"yes": 0, "no": 1, "unknown": 3}


@playhead_command("conform", short_help="Check runs against a workflow")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@click.option(
    "--workflow",
    "-w",
    required=True,
    metavar="FILE",
    help="TOML file, folder of playhead experience, or code-generation, quality-check, refactoring or"
    " incident-triage.",
)
@click.option("--alignment", is_flag=True, help="Show each run beside the workflow, step by step.")
@runs_option()
def command(session: Session, words: tuple[str, ...], workflow: str, alignment: bool, runs: int) -> int:
    """Check whether the runs of QUERY did what a workflow says.

    The completeness of a run is the share of what is required that it did. What is missing and what is
    not expected comes from the optimal alignment of its steps with the workflow. Exit status: 0 all runs
    conform; 1 one does not; 2 usage error, or no run matches; 3 it cannot be said of one, because it has
    not ended or a bound needs something that is not known.
    """
    wanted = read_workflow(workflow)
    selected = select(session, words, runs, with_states=bool(wanted.states))
    report = conformance_of(wanted, selected.paths)
    if not report.runs:
        raise UsageError(f"{wanted.name} is for other agents: {', '.join(wanted.agents)}")
    if session.as_json:
        session.print_json(msgspec.to_builtins(report))
        return STATUSES[report.conforms]
    if alignment:
        lines = (line for one in report.results for line in (*run_lines(one), *alignment_lines(one)))
        print_lines(session, lines, paged=True)
    else:
        print_lines(session, conformance_lines(report), paged=True)
    report_selection(session, selected, runs)
    return STATUSES[report.conforms]


@click.group("workflow", cls=CommandGroup, short_help="Discover a workflow from good runs")
def workflow_command() -> None:
    """Discover a workflow from good runs, for ``playhead conform``."""


@playhead_command("discover", short_help="Write a workflow of good runs")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@click.option("--name", default="", help="Name of the workflow. Default: of the agent.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write this file instead of stdout.",
)
@runs_option()
def discover_command(
    session: Session, words: tuple[str, ...], name: str, output: Path | None, runs: int
) -> None:
    """Write a workflow file from the successful runs of QUERY, to be reviewed and committed.

    Actions, their bounds, transitions and precedences come from the runs that succeeded. What only other
    runs of QUERY did becomes a rule of absence. Edges that are too rare to tell them from noise are left
    out.
    """
    selected = select(session, words, runs, with_states=True)
    good = [path for path in selected.paths if path.status == "success"]
    if not good:
        raise UsageError("no run of the query succeeded", hint="playhead ls status:success")
    other = [path for path in selected.paths if path.failed]
    agents = sorted({path.agent for path in good if path.agent.isprintable()})
    text = discover(good, other, name or "-".join(agents[:1]), agents)
    found = workflow_of(text.encode())
    if output is not None:
        with written(output) as file:
            file.write(text.encode())
        session.say(
            f"wrote {output}: {count(len(found.actions), 'action')} of {count(len(good), 'good run')}"
        )
        session.suggest(f"playhead conform {' '.join(words)} --workflow {output}")
    if session.as_json:
        printed: PrintedWorkflow = {"schema_version": 1, "runs": len(good), "workflow": text}
        session.print_json(printed)
    elif output is None:
        click.echo(text, nl=False)
    report_selection(session, selected, runs)


workflow_command.add_command(discover_command)
