"""``playhead resume``: bring a dead run to its end."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import click

from playhead_receiver.cli.branching import delivered, said_of, started
from playhead_receiver.cli.child import die_as, signals_held
from playhead_receiver.cli.options import verb
from playhead_receiver.cli.runs import opened_run, parse_target
from playhead_receiver.cli.session import Session
from playhead_semconv.errors import UsageError

if TYPE_CHECKING:
    from playhead_replay import RecordedExchange, Run
    from playhead_replay.forks.resume import Decide
    from playhead_semconv.plans import Unknown

ON_UNKNOWN = ("resend", "skip", "ask")


@verb("resume", short_help="bring a dead run to its end")
@click.argument("target", metavar="[RUN]", required=False)
@click.option(
    "--on-unknown",
    type=click.Choice(ON_UNKNOWN),
    default="ask",
    show_default=True,
    help="What becomes of a write that was sent and not answered.",
)
@click.option("--python", default="", help="The agent's interpreter. Default: the recorded one.")
@click.option("--cwd", default="", help="Where the program lies. Default: the recorded folder.")
def command(session: Session, target: str | None, on_unknown: str, python: str, cwd: str) -> int:
    """Bring a dead run to its end: from its tape as far as that goes, then for real.

    Nothing of the first part happens again: no request, no write. It is a new run, shown under the dead
    one. Exit status: the program's.
    """
    from playhead_receiver.cli.housing import housing
    from playhead_replay.forks.resume import resume_of
    from playhead_replay.forks.start import folder_of

    wanted = parse_target(target)
    with signals_held(), housing(session.data_dir) as house:
        delivered(session, house)
        with opened_run(session, wanted) as run:
            _require_dead(run)
            tape, plan = resume_of(run, _decide(session, on_unknown))
            session.progress(f"resuming {run.name}")
            folder = folder_of(run.command, cwd)
            status, made = started(session, house, tape, plan, python=python, folder=folder)
    if made is None:
        session.say("nothing was recorded")
    else:
        for line in said_of(made):
            session.say(line)
        session.say(f"{made.name} {made.status}, {len(made.steps)} steps; from {run.name}")
        session.suggest(shlex.join(["playhead", "show", made.name]))
    return die_as(status)


def _require_dead(run: Run) -> None:
    """`UsageError` where the process of a run lives."""
    if run.status != "running":
        return
    from playhead_semconv import attributes as a

    start = next(run.tape.facts())
    pid = int(start.attributes.get(a.PLAYHEAD_PROCESS_PID, 0))
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        run.status = "interrupted"
        return
    except PermissionError:
        pass
    raise UsageError(
        f"{run.name} still runs, as process {pid}", hint=f"follow it: playhead tail {run.name}"
    )


def _decide(session: Session, on_unknown: str) -> Decide:
    def decide(exchange: RecordedExchange) -> Unknown:
        what = f"{exchange.name} {exchange.key}"
        if on_unknown != "ask":
            session.say(f"{what} was sent and not answered: {on_unknown}")
            return "resend" if on_unknown == "resend" else "skip"
        if not sys.stdin.isatty():
            raise UsageError(
                f"{what} was sent and not answered, and may have been done",
                hint="say what becomes of it: --on-unknown resend, or --on-unknown skip",
            )
        question = f"playhead: {what} was sent and not answered, and may have been done."
        choice = click.Choice(["resend", "skip"])
        answer: str = click.prompt(question, type=choice, err=True)
        return "resend" if answer == "resend" else "skip"

    return decide
