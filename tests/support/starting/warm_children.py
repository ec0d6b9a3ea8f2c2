"""What a forked `playhead` starts is a fork, too: commands, recordings, and replays once isolated.

They are no children of the command: a process in between tells it how each ends.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from support.starting.forked import COMMAND, LARGEST_BYTES, RECORDER, Forked, at_start, fork

_spawn: Final = os.posix_spawn
_waitpid: Final = os.waitpid

_said: dict[int, socket.socket] = {}
"""Where it is told how a process ends, by process id."""


def start_by_forks(helpers: Sequence[Any], descriptors: Sequence[int]) -> None:
    """In a command: start what can be by asking ``helpers``, pairs of a verb and what each started with.

    ``descriptors``: of their sockets.
    """
    controls = {
        (verb, frozenset(map(tuple, environ))): socket.socket(fileno=number)
        for (verb, environ), number in zip(helpers, descriptors, strict=True)
    }

    def forked(words: Sequence[str], environ: Mapping[str, str], cwd: str, streams: list[int]) -> int:
        at = words.index("--") + 1 if words[1:3] == ["-I", "-S"] else 0
        isolated, own = words[3 : at - 1] if at else [], words[at:]
        if own[:2] != [sys.executable, "-m"] or (at and float(isolated[-1])):
            return 0  # not ours, or its isolation waits for what it forks itself
        how = {RECORDER: own[3], COMMAND: COMMAND}.get(own[2], "")
        control = controls.get((how, at_start(environ)))
        if control is None or "PYTHONPATH" in environ:
            return 0
        request = {"words": own, "environ": dict(environ), "cwd": cwd, "isolated": isolated[:-2]}
        request |= {"adopted": False, "asker": os.getpid()}
        given = [(verb, one) for (verb, one) in controls if how == COMMAND != verb]
        request["helpers"] = [[verb, sorted(one)] for verb, one in given]
        pid, _said[pid] = fork(control, request, streams, [controls[one].fileno() for one in given])
        return pid

    class Process(Forked):
        def _fork(self, words: list[str], environ: dict[str, str], cwd: str, streams: list[int]) -> int:
            return forked(words, environ, cwd, streams)

    def spawn(path: str, words: Sequence[str], environ: Mapping[str, str], **options: Any) -> int:
        pid = forked(words, environ, os.getcwd(), [0, 1, 2])
        return pid or _spawn(path, words, environ, **options)

    os.posix_spawn, os.waitpid, subprocess.Popen = spawn, _waited, Process


def _waited(pid: int, options: int) -> tuple[int, int]:
    """`os.waitpid`, also for processes that are no children."""
    said = _said.get(pid)
    if said is None:
        return _waitpid(pid, options)
    if options & os.WNOHANG and not select.select([said], [], [], 0)[0]:
        return 0, 0
    with said:
        del _said[pid]
        return pid, int(said.recv(LARGEST_BYTES))
