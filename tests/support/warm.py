"""Starts ``python -m playhead_cli`` and ``python -m playhead_instrumentation`` already imported.

Those are most of a start. Such a process is a fork, and else as if it had been started: a child of this
process, with its own streams, environment, folder and arguments. What is about starts itself, about
`/proc/PID/cmdline` or about imports, starts its processes with `subprocess`.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from support.warm_process import LARGEST_BYTES, RECORDER

TESTS = Path(__file__).parents[1]
PACKAGES = frozenset(("playhead_cli", RECORDER))

AT_START = ("PYTHON", "LC_", "LANG")
"""What an interpreter reads of its environment at its start: forks of one process have the same."""

COLD = ("OTEL_", "LD_", "MALLOC_")
"""What libraries read when they are imported or loaded: with such variables, a process is started."""

PR_SET_CHILD_SUBREAPER = 36

_ADOPTING = threading.Lock()
_libc = ctypes.CDLL(None, use_errno=True)


def playhead(
    *words: str, environ: Mapping[str, str], cwd: Path, timeout_s: float, input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``playhead`` without a terminal. `subprocess.TimeoutExpired`."""
    command = [sys.executable, "-m", "playhead_cli", *words]
    return run(command, env=environ, cwd=cwd, timeout=timeout_s, input=input)


def run(
    words: Sequence[str], *, input: str | None = None, timeout: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of a command line, with captured text."""
    pipes = dict.fromkeys(("stdout", "stderr", *(() if input is None else ("stdin",))), subprocess.PIPE)
    with Process(words, text=True, **{**options, **pipes}) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


class Process(subprocess.Popen[Any]):
    """A process that is a fork where it can be; else it is started like any other."""

    def _execute_child(self, *given: Any) -> None:
        original = subprocess.Popen._execute_child  # pyright: ignore
        asked = inspect.signature(original).bind(self, *given).arguments
        streams = [asked[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [number if one == -1 else one for number, one in enumerate(streams)]
        environ = {**(os.environ if asked["env"] is None else asked["env"])}
        if not _plain(asked) or any(map(os.isatty, streams)) or any(map(_is_cold, environ)):
            original(self, *given)
            return
        folder = os.fspath(asked["cwd"] or os.getcwd())
        request = {"words": [os.fspath(one) for one in asked["args"]], "environ": environ, "cwd": folder}
        self.pid = _for(request["words"], environ).fork(request, streams)
        self._child_created = True
        self._close_pipe_fds(*(asked[name] for name in _PIPES))  # pyright: ignore


_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")

_USUAL = {
    "executable": None,
    "preexec_fn": None,
    "close_fds": True,
    "pass_fds": (),
    "shell": False,
    "restore_signals": True,
    "start_new_session": False,
    "process_group": -1,
    "umask": -1,
    "uid": None,
    "gid": None,
    "gids": None,
}


def _plain(asked: Mapping[str, Any]) -> bool:
    """Whether this is a command line of ours, with nothing unusual."""
    words = asked["args"]
    ours = isinstance(words, list) and len(words) > 3 and words[:2] == [sys.executable, "-m"]
    return (
        ours
        and words[2] in PACKAGES
        and all(asked.get(name, value) == value for name, value in _USUAL.items())
    )


def _is_cold(name: str) -> bool:
    return name.startswith(COLD)


def _for(words: Sequence[str], environ: Mapping[str, str]) -> _Warm:
    """The process to fork. A replay imports other things before it patches anything than a recording."""
    package, verb = words[2:4]
    at_start = {name: value for name, value in environ.items() if name.startswith(AT_START)}
    at_start.pop("PYTHONPATH", None)
    return _process(package, verb if package == RECORDER else "", frozenset(at_start.items()))


@cache
def _process(package: str, verb: str, environ: frozenset[tuple[str, str]]) -> _Warm:
    return _Warm(package, dict(environ))


class _Warm:
    """The process that is forked. It ends with this one."""

    def __init__(self, package: str, environ: Mapping[str, str]) -> None:
        self._control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        known = (*AT_START, *COLD)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(known)}
        with its:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "support.warm_process", str(its.fileno()), package],
                env={**kept, **environ, "PYTHONPATH": str(TESTS)},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[its.fileno()],
            )

    def fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> int:
        """The process id of a new child of this process."""
        with _ADOPTING:
            _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._control, [json.dumps(request).encode()], streams)
                pid = self._control.recv(LARGEST_BYTES)
                assert pid, "the process that is forked is gone"
                self._control.recv(LARGEST_BYTES)
            finally:
                _libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        return int(pid)
