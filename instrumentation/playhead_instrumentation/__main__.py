"""Runs a program as ``python`` would, recorded, or answered from a tape.

::

    python -m playhead_instrumentation record [-m MODULE | SCRIPT] [ARGUMENTS…]
    python -m playhead_instrumentation replay --tape FILE --now FILE [--origin RUN] -- PROGRAM…

Exit status and streams are the program's own; 2 when it could not be started.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import signal
import sys
import time
from pathlib import Path
from types import TracebackType

from playhead_semconv.errors import PlayheadError, UsageError

PROGRAM = "python -m playhead_instrumentation"


def main(arguments: list[str]) -> int:
    """Run what ``arguments`` say; 2 when that cannot be started, else the program decides."""
    verb, words = arguments[:1], arguments[1:]
    try:
        if verb == ["record"]:
            return record(words)
        if verb == ["replay"]:
            return replay(words)
        raise UsageError(
            "say record or replay", hint="python -m playhead_instrumentation record agent.py"
        )
    except PlayheadError as problem:
        print(problem, file=sys.stderr)
        return 2


def record(words: list[str]) -> int:
    """Run the program ``words`` and record it."""
    program = Program(words[1:] if words[:1] == ["--"] else words)
    program.enter()
    from playhead_instrumentation.bootstrap.launch import launch

    launch()
    return program.run()


def replay(words: list[str]) -> int:
    """Run the program, every boundary answered from a tape; its facts go to another."""
    parser = argparse.ArgumentParser(
        prog="python -m playhead_instrumentation replay", allow_abbrev=False
    )
    parser.add_argument("--tape", type=Path, required=True)
    parser.add_argument("--now", type=Path, required=True)
    parser.add_argument("--origin", default="")
    cut = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:cut])
    program = Program(words[cut + 1 :])

    from playhead_instrumentation.bootstrap.start import start_recording
    from playhead_instrumentation.tape_file import TapeFile, read_tape

    try:
        tape = read_tape(options.tape)
        sink = TapeFile(options.now, time.time_ns())
    except OSError as problem:
        raise UsageError(f"cannot open the tape: {problem}") from problem
    program.enter()
    start_recording(tape=tape, sink=sink, origin=options.origin)
    return program.run()


class Program:
    """What is to run: a script or a module, and its arguments."""

    def __init__(self, words: list[str]) -> None:
        if not words or (words[0] == "-m" and len(words) < 2):
            raise UsageError("which program?", hint=f"{PROGRAM} record agent.py")
        self._module = words[1] if words[0] == "-m" else ""
        self._words = words[1:] if self._module else words
        if not self._module and not Path(words[0]).exists():
            raise UsageError(f"no file {words[0]} in {os.getcwd()}")

    def enter(self) -> None:
        """Make ``sys.argv`` and ``sys.path`` the program's."""
        from playhead_instrumentation.process_facts import announce

        sys.argv = list(self._words)
        # ``python -m`` put the working directory here; ``python SCRIPT`` puts the script's folder.
        sys.path[0] = os.getcwd() if self._module else str(Path(self._words[0]).resolve().parent)
        announce(f"-m {self._module}" if self._module else self._words[0], list(self._words))

    def run(self) -> int:
        """Run it as ``__main__``. What leaves it is reported as Python does, without our frames."""
        if self._module and importlib.util.find_spec(self._module) is None:
            print(f"{sys.executable}: No module named {self._module}", file=sys.stderr)
            return 1
        try:
            if self._module:
                runpy.run_module(self._module, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(self._words[0], run_name="__main__")
        except SystemExit as leaving:
            sys.exit(leaving.code)  # however it was raised: this call is what the recording sees
        except BaseException as error:
            return died_of(error)
        return 0


def died_of(error: BaseException) -> int:
    """Tell of an exception that left the program, as the interpreter would; the exit status."""
    frames = own_frames(error.__traceback__)
    error.__traceback__ = frames
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, frames
    sys.excepthook(type(error), error, frames)
    return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def own_frames(frames: TracebackType | None) -> TracebackType | None:
    """``frames`` from where the program begins: without this module's and `runpy`'s."""
    rest = frames
    while rest is not None and rest.tb_frame.f_code.co_filename in (
        __file__,
        runpy.__file__,
        "<frozen runpy>",
    ):
        rest = rest.tb_next
    return rest or frames


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
