"""`playhead` in a process that has its imports already: they take longer than most commands."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

from support.warm_process import LARGEST_BYTES

TESTS = Path(__file__).parents[1]


def playhead(
    *words: str, environ: Mapping[str, str], cwd: Path, timeout_s: float, input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``playhead`` without a terminal. `subprocess.TimeoutExpired`."""
    return _process().run(list(words), environ, cwd, timeout_s, input)


@cache
def _process() -> _Warm:
    return _Warm()


class _Warm:
    """The process that is forked. It ends with this one. Not thread-safe."""

    def __init__(self) -> None:
        self._control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "support.warm_process", str(its.fileno())],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )
        self._imports: list[str] = []

    def run(
        self, words: list[str], environ: Mapping[str, str], cwd: Path, timeout_s: float, input: str
    ) -> subprocess.CompletedProcess[str]:
        request = {
            "words": words,
            "environ": dict(environ),
            "cwd": str(cwd),
            "imports": self._imports,
        }
        with ExitStack() as opened, ThreadPoolExecutor(2) as readers:
            stdin = opened.enter_context(tempfile.TemporaryFile("w+"))
            stdin.write(input)
            stdin.seek(0)
            said, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            opened.enter_context(said)
            pipes = [os.pipe(), os.pipe()]
            passed = [stdin.fileno(), *(write for _, write in pipes), its.fileno()]
            socket.send_fds(self._control, [json.dumps(request).encode()], passed)
            its.close()
            for _, write in pipes:
                os.close(write)
            texts = [readers.submit(_read, read) for read, _ in pipes]
            status = self._ended(said, words, timeout_s)
            return subprocess.CompletedProcess(words, status, *(text.result() for text in texts))

    def _ended(self, said: socket.socket, words: list[str], timeout_s: float) -> int:
        """The exit status of a command, negative for a signal."""
        deadline, told = time.monotonic() + timeout_s, dict[str, Any]()
        while "status" not in told:
            said.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                message = said.recv(LARGEST_BYTES)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.kill(told["pid"], signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, timeout_s) from None
            assert message, "the process that is forked is gone"
            told |= json.loads(message)
        self._imports = told.get("imported", [])
        return told["status"]


def _read(descriptor: int) -> str:
    with open(descriptor) as text:
        return text.read()
