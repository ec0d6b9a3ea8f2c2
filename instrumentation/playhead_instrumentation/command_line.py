"""``python -m playhead_instrumentation record|replay|…``: runs a program in this interpreter.

::

    record [--tape FILE] [--] [-m MODULE | SCRIPT] ARGUMENTS…
    replay --tape FILE --now FILE [--scratch FOLDER] [--origin RUN] [--live TOOL]… [--allow HOST]…
    replay --tape FILE --now FILE [--forks FILE] [--origin RUN] [--live TOOL]… [--allow HOST]…
           [--live-model] [--check FILE]… [--headers FILE] -- [-m MODULE | SCRIPT] ARGUMENTS…
    warm --control FD --tape FILE --scratch FOLDER --isolation FOLDER --ahead FILE
         [--leave-out PACKAGE]…
    command [--] COMMAND ARGUMENTS…
    fork --tape FILE --plan FILE [--forks FILE] [--cwd FOLDER] [--headers FILE]
         -- [-m MODULE | SCRIPT] ARGUMENTS…

``record --tape`` writes a tape file and sends nothing. ``command`` becomes another program; any Python
in it is recorded. ``replay`` answers from the tape and writes its own tape to another file. ``warm``
waits and forks such replays. ``fork`` answers from the tape as far as it goes, goes on for real, and is
recorded; its plan is one of `playhead_core.rerun.plans`. The exit status is the program's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_core.errors import PlayheadError, ReplayFailed
from playhead_core.rerun.headers import read_headers
from playhead_core.settings import environment_name
from playhead_instrumentation.bootstrap.early import switched_off
from playhead_instrumentation.patching.program import Program
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.session import checks, session

if TYPE_CHECKING:
    from playhead_instrumentation.recorder.driver import Driver
    from playhead_instrumentation.replayer.service.service import Service

CHECKS = environment_name("checks")


def prepared(words: list[str]) -> Program | Service:
    """Start what ``words`` say and give the program to run. Raises `SystemExit` on failure."""
    try:
        if words[:1] == ["replay"]:
            return _replay(words[1:])
        elif words[:1] == ["warm"]:
            return _warm(words[1:])
        elif words[:1] == ["fork"]:
            return _fork(words[1:])
        return _record(words[1:] if words[:1] == ["record"] else [])
    except PlayheadError as problem:
        sys.stderr.write(f"{problem}\n")
        raise SystemExit(problem.exit_status) from None


def run(program: Program | Service) -> None:
    """Run the program. Raises `SystemExit` unless it ends normally."""
    try:
        program.run()
    except PlayheadError as problem:
        sys.stderr.write(f"{problem}\n")
        raise SystemExit(problem.exit_status) from None


def _record(words: list[str]) -> Program:
    from playhead_instrumentation.bootstrap.launch import launch

    file = Path(words[1]) if words[:1] == ["--tape"] and len(words) > 1 else None
    program = Program.of_words(words if file is None else words[2:])
    checks.load_all(os.environ.get(CHECKS, ""))
    RUNTIME.program = program
    if switched_off():
        return program
    if file is None:
        launch()
    else:
        from playhead_instrumentation.bootstrap.start import start_recording
        from playhead_instrumentation.recorder.tape_writer import TapeWriter

        start_recording(sink=TapeWriter(file))
    return program


def _warm(words: list[str]) -> Program | Service:
    from playhead_instrumentation.bootstrap.warm.process import wait

    return _replay(wait(words), waited=True)


def _replay(words: list[str], *, waited: bool = False) -> Program | Service:
    """Start a replay. ``waited``: this process is a fork of a waiting process."""
    import argparse  # imported late: a recording does not need it

    from playhead_instrumentation.bootstrap.replay_process import ReplayProcess, load

    parser = argparse.ArgumentParser(prog="python -m playhead_instrumentation replay")
    parser.add_argument("--tape", required=True, type=Path, help="the tape that answers")
    parser.add_argument("--now", required=True, type=Path, help="where the replay writes its tape")
    parser.add_argument("--scratch", default="", help="an empty folder for what the program writes")
    parser.add_argument("--forks", type=Path, help="the tapes that answer in processes it forks")
    parser.add_argument("--origin", default="", help="run id of the run that is replayed")
    parser.add_argument("--live", action="append", default=[], help="a tool that runs for real")
    parser.add_argument("--allow", action="append", default=[], help="a host that may be reached")
    parser.add_argument("--live-model", action="store_true", help="calls of models are real")
    parser.add_argument("--check", action="append", default=[], help="a file of check functions")
    parser.add_argument("--headers", type=Path, help="headers that requests are asked with")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="the program")
    asked = parser.parse_args(words)
    program, headers = Program.of_words(asked.words), _given(asked.headers)
    for path in asked.check:
        checks.load(path)
    RUNTIME.program = program
    replayed = ReplayProcess(
        str(asked.now),
        str(asked.forks or ""),
        asked.scratch,
        asked.origin,
        tuple(asked.live),
        tuple(asked.allow),
        asked.live_model,
        tuple(asked.check),
        ReplayProcess.held(),
        ReplayProcess.held_by_kernel(),
    )
    tape = load(asked.tape)
    running = replayed.begin(tape) if waited else replayed.start(tape)
    return _served(running.driver, program, headers)


def _given(headers: Path | None) -> dict[str, str]:
    """The headers in a file. Must be read first, since later reads of files are blocked."""
    if headers is None:
        return {}
    return read_headers(headers.read_bytes())


def _served(driver: Driver, program: Program, headers: Mapping[str, str]) -> Program | Service:
    """What to run: the program, or its application where the tape holds inbound requests."""
    if not driver.requests:
        return program
    from playhead_instrumentation.replayer.service.service import Service

    return Service(driver, program, headers)


def _fork(words: list[str]) -> Program | Service:
    import argparse  # imported late: a recording does not need it

    from playhead_core.rerun.plans import read_plan
    from playhead_instrumentation.bootstrap.launch import launch
    from playhead_instrumentation.bootstrap.replay_process import load, load_several

    parser = argparse.ArgumentParser(prog="python -m playhead_instrumentation fork")
    parser.add_argument("--tape", required=True, type=Path, help="the tape that answers, up to its end")
    parser.add_argument("--plan", required=True, type=Path, help="what to do there")
    parser.add_argument("--forks", type=Path, help="the tapes of processes it forks")
    parser.add_argument("--cwd", default=".", help="the folder that the program works in")
    parser.add_argument("--headers", type=Path, help="headers that requests are asked with")
    parser.add_argument("--check", action="append", default=[], help="a file of check functions")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="the program")
    asked = parser.parse_args(words)
    program, headers = Program.of_words(asked.words), _given(asked.headers)
    tape, plan = load(asked.tape), read_plan(asked.plan.read_bytes())
    forks = [] if asked.forks is None else load_several(asked.forks)
    for path in asked.check:
        checks.load(path)
    os.chdir(asked.cwd)
    RUNTIME.program = program
    launch(tape, plan)
    running = session.current()
    if running is None or running.mode != plan.mode:
        raise ReplayFailed("the fork could not start, and the program is not run for real")
    running.forks = forks
    return _served(running.driver, program, headers)
