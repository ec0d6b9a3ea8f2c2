"""Executes a process to its end, either cold or as a fork of a warm process."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from playhead_core.errors import ReplayFailed
from playhead_replay.runner.isolation import Withheld
from playhead_replay.runner.process_start import Start
from playhead_replay.runner.warm_processes import Warm
from playhead_replay.tape_files.tape_file import read_unfinished
from playhead_semconv import attributes as a

FORKS_PATIENCE_S = 30.0
"""Seconds that forks may outlive the process that started them."""

HELD = "PLAYHEAD_REPLAY_HELD"
"""Variable that names the file descriptor which all processes of a replay hold open until they end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended."""

    returncode: int
    """Exit status, negative for a signal."""
    stdout: bytes
    stderr: bytes
    warm: bool = False
    """Whether it ran in a fork of a warm process."""


def execute(start: Start, words: list[str], *, forks: bool) -> Ended:
    """Run ``words``, the complete command line of ``start``, to its end. `ReplayFailed` if it cannot
    start.

    The output streams go to files, so a full pipe never blocks the process. ``forks``: also wait for the
    forks of the process, which all hold a pipe open until they end.
    """
    scratch = start.scratch
    over, held = os.pipe() if forks else (-1, -1)
    with (
        open(scratch / "stdout", "w+b") as stdout,
        open(scratch / "stderr", "w+b") as stderr,
    ):
        try:
            child = subprocess.Popen(
                words,
                cwd=start.folder,
                env={**start.environ, HELD: str(held)} if forks else start.environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(held,) if forks else (),
            )
        except OSError as problem:
            raise ReplayFailed(
                f"{words[0]} cannot be started",
                cause=str(problem),
                hint="playhead replay RUN --python PATH",
            ) from problem
        finally:
            if forks:
                os.close(held)
        try:
            returncode = child.wait()
            if forks:
                _until_over(over, scratch)
        except BaseException:
            child.kill()
            child.wait()
            raise
        stdout.seek(0)
        stderr.seek(0)
        return Ended(returncode, stdout.read(), stderr.read())


def execute_warm(warm: Warm, start: Start, words: list[str], withheld: Withheld) -> Ended | None:
    """Run a replay in a fork of a warm process; None if no warm process is available.

    ``words``: the words after ``replay``. ``withheld``: what the kernel is to withhold from the process.
    """
    scratch = start.scratch
    returncode = warm.execute(start, words, withheld)
    if returncode is None:
        for left in ("over", "written"):
            shutil.rmtree(scratch / left, ignore_errors=True)
        (scratch / "written").mkdir()
        return None
    said = [(scratch / name).read_bytes() for name in ("stdout", "stderr")]
    return Ended(returncode, *said, warm=True)


def _until_over(over: int, scratch: Path) -> None:
    """Wait for forks that outlive their parent process; kill those that do not end in time."""
    try:
        if select.select([over], [], [], FORKS_PATIENCE_S)[0]:
            return
        for path in scratch.glob("now.*.tape"):
            first = next(read_unfinished(path).tape.facts(), None)
            pid = 0 if first is None else int(first.attributes.get(a.PLAYHEAD_PROCESS_PID, 0))
            with contextlib.suppress(OSError):
                if pid:
                    os.kill(pid, signal.SIGKILL)
    finally:
        os.close(over)
