"""Starts ``python -m playhead_cli``, ``-m playhead_instrumentation`` and ``-m pytest`` already imported.

Imports are most of a start. Such a process is a fork, and else as if it had been started: a child of
this process, with its own streams, environment, folder and arguments. What is about starts itself, about
`/proc/PID/cmdline` or about imports, starts its processes with `subprocess`.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from support.starting.forked import AT_START, COMMAND, LARGEST_BYTES, RECORDER, Forked, at_start, fork

TESTS = Path(__file__).parents[2]
PACKAGES = frozenset((COMMAND, "pytest", RECORDER))

COLD = ("OTEL_", "LD_", "MALLOC_")
"""What libraries read when they are imported or loaded: with such variables, a process is started.

So is a recording or a replay with a search path of its own, which may have other libraries.
"""

STARTS = {
    "record": ("record",),
    "replay": ("replay", "fork"),
    "golden": ("replay",),
    "fork": ("fork",),
    "resume": ("fork",),
    "demo": ("record", "replay"),
}
"""How the verbs of ``playhead`` start programs. The demonstration does so by other commands."""

PR_SET_CHILD_SUBREAPER = 36

_ADOPTING = threading.Lock()
_libc = ctypes.CDLL(None, use_errno=True)


def playhead(
    *words: str, environ: Mapping[str, str], cwd: Path, timeout_s: float, input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``playhead`` without a terminal. `subprocess.TimeoutExpired`."""
    command = [sys.executable, "-m", COMMAND, *words]
    return run(command, env=environ, cwd=cwd, timeout=timeout_s, input=input, kind=WithForks)


def run(
    words: Sequence[str],
    *,
    input: str | None = None,
    timeout: float,
    kind: type[Process] | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of a command line, with captured text."""
    pipes = dict.fromkeys(("stdout", "stderr", *(() if input is None else ("stdin",))), subprocess.PIPE)
    with (kind or Process)(words, text=True, **{**options, **pipes}) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


class Process(Forked):
    """A command, a recording or a replay."""

    def _fork(self, words: list[str], environ: dict[str, str], cwd: str, streams: list[int]) -> int:
        ours = len(words) > 3 and words[:2] == [sys.executable, "-m"] and words[2] in PACKAGES
        cold = any(name.startswith(COLD) for name in environ) or any(map(os.isatty, streams))
        if cold or not ours or (words[2] == RECORDER and "PYTHONPATH" in environ):
            return 0
        request = {"words": words, "environ": environ, "cwd": cwd, "isolated": []}
        helpers = self._helpers(words[3], environ)
        return _for(words[2], words[3], environ).adopted(request, streams, helpers)

    def _helpers(self, verb: str, environ: Mapping[str, str]) -> Mapping[str, _Warm]:
        """What is forked for what the process starts itself, by how that is started."""
        return {}


class WithForks(Process):
    """A command whose recordings and replays are forks, too: for one that nobody sends a signal."""

    def _helpers(self, verb: str, environ: Mapping[str, str]) -> Mapping[str, _Warm]:
        commands = {COMMAND: _for(COMMAND, "", environ)} if verb == "demo" else {}
        environ = {"PYTHONHASHSEED": "0", **environ}  # the one of a recording
        return commands | {how: _for(RECORDER, how, environ) for how in STARTS.get(verb, ())}


def _for(package: str, verb: str, environ: Mapping[str, str]) -> _Warm:
    """The process to fork. A replay imports other things before it patches anything than a recording."""
    return _process(package, verb if package == RECORDER else "", at_start(environ))


@cache
def _process(package: str, verb: str, environ: frozenset[tuple[str, str]]) -> _Warm:
    return _Warm(package, environ)


class _Warm:
    """The process that is forked. It ends with this one."""

    def __init__(self, package: str, environ: frozenset[tuple[str, str]]) -> None:
        self.environ = environ
        self.control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        known = (*AT_START, *COLD)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(known)}
        with its:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "support.starting.warm_process", str(its.fileno()), package],
                env={**kept, **dict(environ), "PYTHONPATH": str(TESTS)},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[its.fileno()],
            )

    def adopted(
        self, request: dict[str, Any], streams: Sequence[int], helpers: Mapping[str, _Warm]
    ) -> int:
        """The process id of a new child of this process."""
        request |= {"adopted": True}
        request["helpers"] = [[verb, sorted(one.environ)] for verb, one in helpers.items()]
        more = [one.control.fileno() for one in helpers.values()]
        with _ADOPTING:
            _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                pid, said = fork(self.control, request, streams, more)
                with said:
                    said.recv(LARGEST_BYTES)
            finally:
                _libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        return pid
