"""``playhead record``: run a Python agent and record it."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.output.words import cost, count, seconds, web_address
from playhead_cli.running.agent import (
    Agent,
    agent_python,
    delivering_to,
    parse_agent,
    recorded_environment,
    with_kept_provider,
)
from playhead_cli.running.child_process import die_as, run_child, signals_held
from playhead_cli.running.receiver_for_run import receiver_for
from playhead_cli.running.recorded_run import RecordedRuns, recorded_runs
from playhead_cli.running.undelivered import delivered_by_another, undelivered
from playhead_cli.session.messages import show_failure, write_message
from playhead_cli.session.options import AgentCommand, check_option, flag_setting, playhead_command
from playhead_cli.session.session import Session, working_folder
from playhead_core.boundaries import LEVELS
from playhead_core.errors import ConfigurationError, PlayheadError
from playhead_core.process.coerced_locale import as_started
from playhead_core.process.interpreter_threads import share_memory_pool
from playhead_exporter.push import push
from playhead_exporter.spool.folders import SpoolFolders
from playhead_exporter.spool.recovery import pending
from playhead_receiver.storage import open_store
from playhead_receiver.system.writer_lock import running, store_mark

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from playhead_cli.json_output.runs import PrintedRecording
    from playhead_cli.running.receiver_for_run import ReceiverForRun
    from playhead_core.settings import Settings
    from playhead_receiver.storage.values.run_summaries import RunSummary
    from playhead_receiver.system.writer_lock import Listening

PATIENCE_S = 30.0
"""Seconds to wait for another command that delivers the agent's data."""

POLL_S = 0.02


@playhead_command("record", cls=AgentCommand, short_help="Run a Python agent and record it")
@click.option(
    "--python", default="", help="Python interpreter of the agent. Default: that of the active venv."
)
@flag_setting("--agent", help="Name of the agent. Default: the script's name.")
@flag_setting(
    "--level",
    help="Recording level. Default: strict.",
    type=click.Choice(LEVELS),
)
@flag_setting(
    "--content",
    help="Content to record; metadata leaves out messages. Default: full.",
    type=click.Choice(["full", "metadata"]),
)
@flag_setting("--control", help="Allow pausing: on, or rules such as 'pause tool=NAME; stop cost>1'.")
@flag_setting("--instrumentors", help="Also load these OpenTelemetry instrumentors, by name, or all.")
@check_option
def command(session: Session, python: str, checks: tuple[Path, ...], words: tuple[str, ...]) -> int:
    """Run a Python agent and record it.

    Output, signals and exit status are those of the agent; the exit status is 1 if the agent succeeds
    and a --check fails. Arguments after SCRIPT, -m MODULE or -- are passed to the agent. No server is
    needed: without a running receiver, this command embeds one.
    """
    if checks:
        session.flags["checks"] = os.pathsep.join(os.path.abspath(path) for path in checks)
    agent = parse_agent(words)
    share_memory_pool()
    interpreter = agent_python(python, os.environ)
    with signals_held() as blocked, recorded_runs() as reports:
        environ = as_started(os.environ)
        inherited = with_kept_provider(session, environ, agent.words, working_folder())
        status = _recorded(Record(session, agent, interpreter, inherited, reports, blocked))
    return die_as(status)


@dataclass(frozen=True, slots=True)
class Record:
    """A recording: the program, and the destination of its facts."""

    session: Session
    agent: Agent
    python: str
    """The interpreter."""
    inherited: Mapping[str, str]
    """The environment that it inherits."""
    reports: RecordedRuns
    """Reports of its processes about their recordings."""
    blocked: Set[int]
    """Signals that it inherits blocked."""
    house: ReceiverForRun | None = None
    """The receiver of its facts; None if the user named an endpoint."""

    def running(self, receiver: Listening | None) -> int:
        """Run the agent and deliver its data. Return its exit status.

        ``receiver``: of the data folder. `PlayheadError` if the interpreter cannot be started.
        """
        session = self.session
        since_ns = time.time_ns()
        environ = recorded_environment(self.inherited, session.resolved, receiver)
        pid, status = self._run(environ | self.reports.variables)
        if not pid:
            return status
        failed = self.reports.failed_checks if session.settings.checks else 0
        status = status or int(failed > 0)
        try:
            self._conclude(pid, status, since_ns, failed)
        except Exception as problem:
            # The agent has run, and its status is the result, whatever we make of it afterwards.
            show_failure(problem, as_json=session.as_json, verbose=session.verbose)
            if not session.as_json:
                write_message(
                    "playhead: the run is only in the spool (not delivered yet); to deliver it: "
                    "playhead spool push\n"
                )
        return status

    def unrecorded(self, problem: Exception) -> int:
        """Run the agent without recording because of ``problem``, and report that."""
        show_failure(problem, as_json=self.session.as_json, verbose=self.session.verbose)
        if not self.session.as_json:
            write_message("playhead: this run is not recorded\n")
        return self._run({**self.inherited, "PLAYHEAD_DISABLED": "1"})[1]

    def _run(self, environ: Mapping[str, str]) -> tuple[int, int]:
        try:
            return run_child(self.agent.command_line(self.python), environ, self.blocked)
        except OSError as problem:
            raise PlayheadError(f"{self.python} cannot be started", cause=str(problem)) from problem

    def _conclude(self, pid: int, status: int, since_ns: int, failed: int) -> None:
        """Deliver the rest of the agent's data and report what was recorded.

        ``failed``: the number of its failed checks.
        """
        session, house = self.session, self.house
        settings = session.settings
        if house is not None:
            settings = delivering_to(settings, house.listening())
        problem = _pushed(settings, self.reports.word)
        if house is not None:
            house.close()  # at its end an embedded receiver determines what calls mean
        found = running(session.data_dir) if house is None else house.running()
        theirs = found is not None and found.store != store_mark(session.settings.store)
        if theirs or (
            house is None and (problem or found is None or found.http != settings.endpoint.rstrip("/"))
        ):
            self._say_sent(settings.endpoint, status, problem)
            return
        if problem:
            session.say(f"not everything was delivered: {problem}")
        store = open_store(session.store, read_only=True)
        try:
            run = self.reports.find(store, pid, since_ns)
        finally:
            store.close()
        if run is None and self.reports.is_recorded():
            self._say_sent(settings.endpoint, status, problem or "it has not reached the store yet")
            return
        if run is None:
            if session.as_json:
                session.print_json(recorded_object(status), to_stderr=True)
            session.say("nothing was recorded: the program called no model, no tool and no network")
            session.suggest("playhead doctor")
            return
        pages = found.query if found is not None and not found.passing else ""
        _summarize(session, run, status, failed, pages)

    def _say_sent(self, endpoint: str, status: int, problem: str) -> None:
        """Report that the run was delivered, or, with ``problem``, that it is in the spool."""
        session = self.session
        left = undelivered(session.settings, self.reports.word) if problem else None
        if session.as_json:
            told = recorded_object(status)
            told["endpoint"], told["problem"] = endpoint, problem or None
            if left is not None:
                told["trace_id"] = left.trace_id
                told["undelivered"] = {"facts": left.facts, "spans": left.spans}
            session.print_json(told, to_stderr=True)
        elif left is not None:
            session.say(f"{left}: {problem}")
            session.suggest("playhead spool push")
        elif problem:
            session.say(f"recorded; earlier data is still in the spool: {problem}")
        else:
            session.say(f"recorded to {endpoint}")


def _recorded(record: Record) -> int:
    """Run and record the agent, or report that nothing is recorded. Return its exit status."""
    session = record.session
    try:
        named = session.resolved.origins["endpoint"] != "default"
    except ConfigurationError as problem:
        return record.unrecorded(problem)
    if named:
        return record.running(None)
    with receiver_for(session.settings) as house:
        try:
            receiver = house.soon()
        except (PlayheadError, OSError) as problem:
            return record.unrecorded(problem)
        if house.embedded:
            session.progress("look while it runs: playhead open")
        return replace(record, house=house).running(receiver)


def _pushed(settings: Settings, by: str) -> str:
    """Deliver the spool. Return the reason if not all of it could be delivered.

    If another command is delivering the data of ``by``, wait until it has finished.
    """
    folders = SpoolFolders.of(settings)
    deadline = time.monotonic() + PATIENCE_S
    while any(one.count for one in pending(folders) if folders.delivers(one.destination)):
        problem = push(settings, attempts=1).problem  # the agent has tried for a while
        if problem or not delivered_by_another(settings, by) or time.monotonic() > deadline:
            return problem
        time.sleep(POLL_S)
    return ""


def recorded_object(exit_code: int) -> PrintedRecording:
    """Return a recorded run of which nothing is known yet, as an object of plain values."""
    return {
        "schema_version": 1,
        "name": None,
        "trace_id": None,
        "status": None,
        "steps": None,
        "duration_ns": None,
        "input_tokens": None,
        "output_tokens": None,
        "cost_usd": None,
        "failed_checks": None,
        "endpoint": None,
        "undelivered": None,
        "problem": None,
        "exit_code": exit_code,
    }


def _summarize(session: Session, run: RunSummary, status: int, failed_checks: int, pages: str) -> None:
    """Report what was recorded. ``pages``: the query API of a permanent receiver; empty without one."""
    ended_ns = run.ended_ns if run.ended_ns is not None else time.time_ns()
    state = "interrupted" if run.status == "running" else run.status
    if session.as_json:
        known: PrintedRecording = {
            **recorded_object(status),
            "name": run.name,
            "trace_id": run.trace_id,
            "status": state,
            "steps": run.steps,
            "duration_ns": ended_ns - run.started_ns,
            "input_tokens": run.input_tokens,
            "output_tokens": run.output_tokens,
            "cost_usd": run.cost_usd,
            "failed_checks": failed_checks,
        }
        session.print_json(known, to_stderr=True)
        return
    parts = [f"{run.name} {state}", count(run.steps, "step"), seconds(ended_ns - run.started_ns)]
    if run.input_tokens or run.output_tokens:
        parts.append(f"{run.input_tokens}→{run.output_tokens} tok")
    if run.cost_usd is not None:
        parts.append(cost(run))
    session.say(", ".join(parts))
    for instance, first, last in run.missing:
        session.say(f"facts {first} to {last} of process {instance[:8]} are missing")
    if failed_checks:
        session.say(f"{count(failed_checks, 'check')} failed")
    if pages:
        session.progress(f"pages: {web_address(pages, run.name)}")
    wrong = run.errors > 0 or state != "success"
    session.suggest(shlex.join(["playhead", "show", f"{run.name}:error" if wrong else run.name]))
