"""Asks a process of `warm_process` for forks of itself, in place of starting processes."""

from __future__ import annotations

import inspect
import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

LARGEST_BYTES = 1 << 20
RECORDER = "playhead_instrumentation"
COMMAND = "playhead_cli"

AT_START = ("PYTHON", "LC_", "LANG")
"""What an interpreter reads of its environment at its start: forks of one process have the same."""

UNUSUAL: Final = {
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
"""Options that a fork does not have, with the values that say so."""

PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")

_execute_child: Final = subprocess.Popen._execute_child  # pyright: ignore


def at_start(environ: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """The variables that an interpreter has to be started with."""
    kept = ((name, value) for name, value in environ.items() if name.startswith(AT_START))
    return frozenset((name, value) for name, value in kept if name != "PYTHONPATH")


def fork(
    control: socket.socket, request: Mapping[str, Any], streams: Sequence[int], more: Sequence[int] = ()
) -> tuple[int, socket.socket]:
    """Ask for a process. Returns its id, and where more is told."""
    said, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        socket.send_fds(control, [json.dumps(request).encode()], [*streams, its.fileno(), *more])
    pid = said.recv(LARGEST_BYTES)
    assert pid, "the process that is forked is gone"
    return int(pid), said


class Forked(subprocess.Popen[Any]):
    """A process that is a fork where it can be; else it is started like any other."""

    def _execute_child(self, *given: Any) -> None:
        asked = inspect.signature(_execute_child).bind(self, *given).arguments
        words = asked["args"]
        usual = all(asked.get(name, value) == value for name, value in UNUSUAL.items())
        pid = 0
        if usual and isinstance(words, list):
            streams = [asked[name] for name in ("p2cread", "c2pwrite", "errwrite")]
            streams = [number if one == -1 else one for number, one in enumerate(streams)]
            environ = {**(os.environ if asked["env"] is None else asked["env"])}
            folder = os.fspath(asked["cwd"] or os.getcwd())
            pid = self._fork([os.fspath(word) for word in words], environ, folder, streams)
        if not pid:
            _execute_child(self, *given)
            return
        self.pid = pid
        self._child_created = True
        self._close_pipe_fds(*(asked[name] for name in PIPES))  # pyright: ignore

    def _fork(self, words: list[str], environ: dict[str, str], cwd: str, streams: list[int]) -> int:
        """The process id of the fork; 0 where there can be none."""
        raise NotImplementedError
