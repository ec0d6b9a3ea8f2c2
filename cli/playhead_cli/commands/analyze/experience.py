"""``playhead experience``: what good runs teach a new run, as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_analysis.workflows.experience import example_among, experience_of
from playhead_cli.commands.analyze.flow import report_selection, select
from playhead_cli.completion.arguments import complete_query
from playhead_cli.output.words import count
from playhead_cli.session.options import CommandGroup, playhead_command, runs_option
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import reading
from playhead_core.errors import UsageError
from playhead_replay import Run
from playhead_replay.tape_files.tape_file import written

if TYPE_CHECKING:
    from playhead_cli.json_output.analysis import PrintedExperience


@click.group("experience", cls=CommandGroup, short_help="Teach new runs what good runs did")
def command() -> None:
    """Write files from good runs that instruct new runs and check them."""


@playhead_command("make", short_help="Write an experience of good runs")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="New folder, or one of an experience, which is written again.",
)
@click.option("--name", default="", help="Name of the experience. Default: of the agent.")
@runs_option()
def make_command(session: Session, words: tuple[str, ...], output: Path, name: str, runs: int) -> None:
    """Write files from the successful runs of QUERY. Review and commit them.

    goal.md, plan.md and steps.md are for the prompt of a new run: the purpose of the runs, their usual
    ways, and one run step by step. workflow.toml checks a run: playhead conform RUN -w FOLDER. rules.txt
    stops a run that exceeds the bounds: playhead record --control "$(paste -sd ';' FOLDER/rules.txt)".
    No model writes them.
    """
    selected = select(session, words, runs, with_states=True)
    good = [path for path in selected.paths if path.status == "success"]
    if not good:
        raise UsageError("no run of the query succeeded", hint="playhead ls status:success")
    other = [path for path in selected.paths if path.failed]
    agents = sorted({path.agent for path in good if path.agent.isprintable()})
    with reading(session) as store:
        example = Run.load(store, example_among(good).trace_id)
    texts = experience_of(good, other, example, name or "-".join(agents[:1]) or "experience", agents)
    if output.exists() and {one.name for one in output.iterdir()} - texts.keys():
        raise UsageError(f"{output} has other files", hint="name a new folder")
    output.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        with written(output / file) as opened:
            opened.write(text.encode())
    session.say(f"wrote {output}: {len(texts)} files of {count(len(good), 'good run')}")
    session.suggest(f"playhead conform {' '.join(words)} -w {output}")
    if session.as_json:
        printed: PrintedExperience = {"schema_version": 1, "runs": len(good), "files": texts}
        session.print_json(printed)
    report_selection(session, selected, runs)


command.add_command(make_command)
