"""Shared by `fork` and `resume`: starting the process, recording it, and reporting what it did."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import click

from playhead_cli.running.agent import delivering_to, recorded_environment, with_kept_provider
from playhead_cli.running.child_process import run_child, signals_held
from playhead_cli.running.receiver_for_run import receiver_for
from playhead_cli.running.receiver_token import report_result
from playhead_cli.running.recorded_run import RecordedRuns, recorded_runs
from playhead_cli.session.messages import show_failure
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import opened_run
from playhead_core.claims import is_claimed
from playhead_core.errors import PlayheadError, UsageError
from playhead_core.rerun.open_connections import stays_open
from playhead_core.untrusted.shown_text import visible
from playhead_exporter.push import pending, push
from playhead_receiver.storage import open_store
from playhead_replay import Run
from playhead_replay.forks.outcome import ForkOutcome
from playhead_replay.forks.workspace import under_way
from playhead_replay.run.command import Command
from playhead_replay.run.inbound_requests import turned_away

if TYPE_CHECKING:
    from playhead_cli.json_output.runs import PrintedBranch
    from playhead_cli.running.receiver_for_run import ReceiverForRun
    from playhead_cli.targets.run_argument import Target
    from playhead_core.rerun.plans import Unknown
    from playhead_replay import Environment, RecordedExchange
    from playhead_replay.forks.ready_fork import Fork
    from playhead_replay.forks.resume import Decide

SHOWN_BYTES, SHOWN_LINES = 2000, 10
"""How much of the answer to a request is shown, in bytes and in lines."""

OURS = ("OTEL_", "PLAYHEAD_")
"""Prefixes of variables that are meant for the recording and not for the program."""


def run_fork(
    session: Session,
    receiver: ReceiverForRun,
    fork: Fork,
    around: Environment,
    checks: Sequence[Path],
    agent: str,
) -> tuple[int, Run | None]:
    """Run the process of a fork to its end. Returns its exit status and its run.

    ``agent``: name of the origin's agent, which the fork keeps unless the environment names one.
    ``around``: where the program runs. ``checks``: files of check functions; if one fails, the exit
    status of a program that ended well is 1.
    """
    command = Command.of_tape(fork.tape)
    words = [command.script, *command.arguments]
    environ = with_kept_provider(session, around.inherited, words, Path(command.cwd))
    around = replace(around, environ=environ)
    with recorded_runs() as reports:
        with TemporaryDirectory(prefix="playhead-fork-") as scratch:
            ready = fork.prepare(Path(scratch), around, checks)
            for line in ready.different:
                session.say(line)
            for name in ready.lacking:
                session.say(f"{name} is not set: the live part uses a placeholder for it")
            ours = {name: value for name, value in os.environ.items() if name.startswith(OURS)}
            if agent and "service.name" not in ours.get("OTEL_RESOURCE_ATTRIBUTES", ""):
                ours.setdefault("OTEL_SERVICE_NAME", agent)
            environ = recorded_environment(
                {**ready.environ, **ours}, session.resolved, receiver.listening()
            )
            since_ns = time.time_ns()
            try:
                pid, status = run_child(ready.words, environ | reports.variables)
            except OSError as problem:
                raise PlayheadError(
                    f"{ready.words[0]} cannot be started", cause=str(problem), hint="--python PATH"
                ) from problem
        try:
            made = _recorded(session, receiver, reports, pid, since_ns)
            seconds = (time.time_ns() - since_ns) / 1e9
            report_result(session, fork.plan.mode, "failed" if made is None else made.status, seconds)
            asked = bool(checks or session.settings.checks)
            return status or int(asked and reports.failed_checks > 0), made
        except Exception as problem:
            show_failure(problem, as_json=session.as_json, verbose=session.verbose)
            session.say("undelivered data is in the spool: playhead spool push")
            return status, None


@contextmanager
def open_origin(session: Session, target: Target) -> Generator[tuple[ReceiverForRun, Run]]:
    """Open a receiver and the run to fork or resume, with undelivered data of dead processes.

    Inside the context signals go to the program, and folders of forks are kept.
    """
    with signals_held(), receiver_for(session.settings) as receiver, under_way(session.data_dir):
        deliver_spools(session, receiver)
        with opened_run(session, target) as run:
            yield receiver, run


def deliver_spools(session: Session, receiver: ReceiverForRun) -> None:
    """Deliver the spools of dead processes, except data for another data folder."""
    found = {one.destination for one in pending(session.settings)}
    endpoints = tuple(one for one in found if "://" in one)  # the run may be of an agent that named one
    report = push(delivering_to(session.settings, receiver.listening()), also=endpoints)
    if report.problem:
        session.say(f"not everything was delivered: {report.problem}")


def _recorded(
    session: Session, receiver: ReceiverForRun, reports: RecordedRuns, pid: int, since_ns: int
) -> Run | None:
    deliver_spools(session, receiver)
    store = open_store(session.store, read_only=True)
    try:
        found = reports.find(store, pid, since_ns)
        return None if found is None else Run.load(store, found.trace_id)
    finally:
        store.close()


def branch_object(made: Run | None, origin: Run, exit_code: int, **known: Any) -> PrintedBranch:
    """Return a fork or resume of ``origin`` as an object of plain values.

    ``known``: ``folder`` with its files, and ``notes`` on what it did.
    """
    return {
        "schema_version": 1,
        "name": None if made is None else made.name,
        "trace_id": None if made is None else made.trace_id,
        "status": None if made is None else cast("Any", made.status),
        "steps": None if made is None else len(made.steps),
        "origin": origin.name,
        "folder": known.get("folder"),
        "notes": known.get("notes", []),
        "exit_code": exit_code,
    }


def check_failures(made: Run) -> list[str]:
    """Return a sentence for each failed check function, with the span at which it failed."""
    return [f"check {one.name} failed at {one.span}: {one.said}" for one in made.failed_checks]


def fork_notes(run: Run) -> tuple[list[str], bool]:
    """Return lines on replayed and live parts of a fork, and whether anything was blocked."""
    outcome = ForkOutcome.of(run)
    return [*outcome.lines(), *_answers(run)], bool(outcome.blocked)


def _answers(run: Run) -> list[str]:
    """Return the program's answers to the requests it received."""
    lines: list[str] = []
    for one in run.requests:
        said = b"".join(one.pieces)[:SHOWN_BYTES].decode("utf-8", "replace")
        lines.append(f"{one.key}: {one}")
        lines += [f"  {line}" for line in said.splitlines()[:SHOWN_LINES]]
    return lines


def rejected_requests(run: Run, made: Run, headers: Mapping[str, str]) -> list[str]:
    """Return sentences on requests that a fork of ``run`` rejected as unauthorized."""
    if not made.tapes:
        return []
    return turned_away(run.requests, made.requests, headers)


on_unknown_option = click.option(
    "--on-unknown",
    type=click.Choice(["resend", "skip", "ask"]),
    default="ask",
    show_default=True,
    help="If a write was sent but its result is unknown: send it again, skip it, or ask.",
)

reopen_option = click.option(
    "--reopen",
    type=click.Choice(["again", "fresh"]),
    help="Whether to resend earlier messages to restarted MCP servers (again) or to start "
    "clean (fresh). Default: again, if they only read.",
)


def unknown_decider(session: Session, on_unknown: str) -> Decide:
    """Return the function that decides what happens to a write that was sent and not answered."""

    def decide(exchange: RecordedExchange) -> Unknown:
        if on_unknown == "ask" and is_claimed(exchange.exchange):
            return "rule"
        what = f"{exchange.name} {exchange.key}"
        is_open = stays_open(exchange.exchange)
        if is_open:
            became = "is still open there: to go on, it is begun anew and told all again"
        elif exchange.exchange.parts:
            became = "was sent and not answered to the end, and may have been done"
        else:
            became = "was sent and not answered, and may have been done"
        if on_unknown != "ask":
            session.say(f"{what} {became.partition(',')[0].partition(':')[0]}: {on_unknown}")
            return "resend" if on_unknown == "resend" else "skip"
        if not sys.stdin.isatty():
            raise UsageError(
                f"{what} {became}",
                hint="send it again: --on-unknown resend"
                if is_open
                else "choose one: --on-unknown resend, or --on-unknown skip",
            )
        question = visible(f"playhead: {what} {became}.")
        answer: str = click.prompt(question, type=click.Choice(["resend", "skip"]), err=True)
        return "resend" if answer == "resend" else "skip"

    return decide
