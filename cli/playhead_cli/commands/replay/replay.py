"""``playhead replay``: run the recorded program again, answered from its tape."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.step.conversation import shown_lines, shown_object
from playhead_cli.running.bisecting import judge
from playhead_cli.running.from_spans import is_only_spans, replay_from_spans, with_named_program
from playhead_cli.running.program import Program, program_option
from playhead_cli.running.receiver_token import report_result
from playhead_cli.session.options import check_option, header_option, option_groups, playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_cli.targets.trust import require_trust, trust_option
from playhead_core.errors import ReplayFailed, UsageError
from playhead_core.facts import Fidelity
from playhead_core.untrusted.shown_text import visible
from playhead_replay import ReplayConfiguration, Replayer, Rules
from playhead_replay.report.junit import junit_xml
from playhead_replay.runner.from_a_step import shown_from
from playhead_replay.tape_files.tape_file import SHARED, written

if TYPE_CHECKING:
    from playhead_replay import ReplayResult, Run

STYLES = {
    "identical": "green",
    "volatile": "green",
    "semantic": "green",
    "diverged": "yellow",
    "blocked": "red",
}


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Options for the permissions of the program."""

    live: tuple[str, ...]
    allow: tuple[str, ...]
    force: bool
    repeat_effects: bool
    strict_match: bool

    def rules(self, checks: Sequence[Path]) -> Rules:
        """Return the same for a `Replayer`. ``checks``: files of check functions."""
        return Rules(
            live=self.live,
            allow=self.allow,
            force=self.force,
            repeat_effects=self.repeat_effects,
            strict_match=self.strict_match,
            checks=checks,
        )


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options for the output."""

    keep: Path | None
    junitxml: Path | None
    output: bool
    point: str | None
    bisect: Path | None
    program: str
    """Command of a run without a tape."""


@playhead_command("replay", short_help="Run the recorded program again, answered from its tape")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option(
    "--python",
    default="",
    help="Python interpreter of the agent. Default: the recorded one; with --bisect, this one.",
)
@click.option("--cwd", default="", help="Working folder of the program. Default: the recorded one.")
@click.option("--force", is_flag=True, help="Replay even if the script has changed.")
@program_option
@click.option(
    "--keep", type=click.Path(path_type=Path, dir_okay=False), help="Save the tape of the replay."
)
@click.option("--live", multiple=True, metavar="TOOL", help="Run this tool live.")
@click.option("--allow", multiple=True, metavar="HOST", help="Allow connections to this host.")
@click.option(
    "--repeat-effects",
    is_flag=True,
    help="Allow changes to unrecorded files if they cannot be isolated.",
)
@click.option(
    "--strict-match",
    is_flag=True,
    help="Exit with 1 if requests differ in times and random values that were not recorded.",
)
@check_option
@trust_option
@header_option
@click.option(
    "--junitxml",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the report as JUnit XML.",
)
@click.option("--output", is_flag=True, help="Show the output of the program, on stderr.")
@click.option("--from", "point", metavar="POINT", help="Show the steps from this point on.")
@click.option(
    "--bisect",
    metavar="GOLDEN",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Test this commit for git bisect run: 0 good, 1 bad, 125 skip.",
)
@option_groups(program=Program, allowed=LiveOptions, wanted=OutputOptions)
def command(
    session: Session, target: str | None, program: Program, allowed: LiveOptions, wanted: OutputOptions
) -> int:
    """Run the recorded program again, with every exchange answered from its tape.

    Nothing runs live and the network is blocked, except for --live and --allow. Prints the fidelity
    report; --from prints the steps from a point on first. Exit status: 0 identical, or volatile
    (requests differ only in times and random values that were not recorded); 1 diverged; 2 nothing to
    replay; 3 blocked.

    A run without a tape is replayed from its spans: --program names its command, and each call of a
    model gets an answer that is rebuilt from the span of the same call. The result is semantic at best,
    and exits with 0 then.
    """
    if wanted.bisect is not None:
        unfit = allowed.live or allowed.allow or wanted.keep or wanted.junitxml
        if target or wanted.point or unfit:
            raise UsageError(
                "--bisect judges a golden: no RUN, and of the options --python, --cwd and --check",
                hint="git bisect run playhead replay --bisect tests/goldens/NAME.tape",
            )
        return judge(session, wanted.bisect, program)
    began = time.monotonic()
    named = parse_target(target, wanted.point)
    with opened_run(session, named) as run:
        if is_only_spans(run):
            return _from_spans(session, run, program, allowed, wanted)
        run = with_named_program(run, wanted.program, program)
        found = find_point(run, named.point) if named.point else None
        if found is not None and found.snapped:
            session.say(found.snapped)
        own = bool(wanted.program)
        foreign = not own and require_trust(session, named, run, trust=program.trust, live=False)
        session.progress(f"replaying {run.name}")
        around, rules = program.surroundings(foreign=foreign), allowed.rules(program.checks)
        replayer = Replayer(ReplayConfiguration(around, rules, wanted.keep, session.say))
        try:
            done = replayer.replay(run)
        except ReplayFailed:
            report_result(session, "replay", "failed", time.monotonic() - began)
            raise
        counts = {str(one): done.report.count(one) for one in Fidelity if done.report.count(one)}
        report_result(session, "replay", done.report.verdict, time.monotonic() - began, counts)
        steps = [] if found is None else list(shown_from(run, done, found.step.number))
        if found is not None and not steps:
            session.say(f"the replay did not reach step {found.step.number}")
    if wanted.junitxml is not None:
        words = ["playhead", "replay", target or run.name, *(["--force"] if allowed.force else [])]
        again = shlex.join([*words, *program.words()])
        with written(wanted.junitxml, SHARED) as file:
            file.write(junit_xml(done.report, again, time.monotonic() - began))
    if wanted.output:
        for said in (done.stderr, done.stdout):
            text = said.decode(errors="replace")
            session.err.file.write(visible(text) if sys.stderr.isatty() else text)
    if session.as_json:
        more = {} if found is None else {"steps": [shown_object(step) for step in steps]}
        session.print_json({**done.report.to_json(), **more})
    else:
        if steps:
            print_lines(session, (line for step in steps for line in shown_lines(step)), cut=False)
        _print(session, done)
        if (first := done.report.first_divergence) is not None:
            further = f"show {run.name}:{first.step}" if first.step else f"doctor {run.name}"
            session.suggest(f"playhead {further}")
    return done.report.exit_code


def _from_spans(
    session: Session, run: Run, program: Program, allowed: LiveOptions, wanted: OutputOptions
) -> int:
    if wanted.keep is not None or allowed.strict_match:
        raise UsageError(
            f"{run.name} has no tape, so --keep and --strict-match do not apply",
            hint=f"playhead replay {run.name} --program COMMAND --json",
        )
    rules = allowed.rules(program.checks)
    words = wanted.program, program, rules
    return replay_from_spans(session, run, *words, output=wanted.output, junitxml=wanted.junitxml)


def _print(session: Session, done: ReplayResult) -> None:
    lines = [Text(line) for line in done.report.lines()]
    for line in lines:
        if line.plain.startswith("  - recorded:"):
            line.stylize("red")
        elif line.plain.startswith("  + now:"):
            line.stylize("green")
    lines[-1].stylize(f"bold {STYLES[done.report.verdict]}")
    print_lines(session, lines, cut=False)
