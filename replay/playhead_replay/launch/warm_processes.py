"""Processes that have imported the libraries of a program, and are forked for each replay.

Importing an SDK takes longer than everything else a short run does. A suite of goldens replays many runs
of few programs, so one process does the imports and each replay runs in a fork of it. There is one such
process per interpreter, folder and environment, so a module sees the same surroundings during its import
as in a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from playhead_replay.launch.isolation import PROGRAM, Withheld, isolated, options
from playhead_replay.launch.process_start import Start

AT_MOST = 4
"""Largest number of warm processes at a time."""

SPOILED_AT_MOST = 3
"""After this many packages whose import leaves a trace, nothing is imported ahead any more."""

Key: TypeAlias = tuple[str, str, frozenset[tuple[str, str]]]


@dataclass(slots=True)
class _Process:
    """One warm process."""

    child: subprocess.Popen[bytes]
    control: socket.socket
    said: Any
    folder: str

    def ask(self, **what: Any) -> dict[str, Any]:
        """Send a request and return the answer; empty if the process is gone."""
        line = b""
        with contextlib.suppress(BrokenPipeError):  # what it wrote before it went can still be read
            self.control.sendall(json.dumps(what).encode() + b"\n")
        with contextlib.suppress(OSError):
            line = self.said.readline()
        return json.loads(line) if line else {}

    def end(self) -> None:
        self.child.kill()
        self.child.wait()
        self.said.close()
        self.control.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(slots=True)
class Warm:
    """The warm processes of one replaying process. Not thread-safe."""

    _processes: dict[Key, _Process] = field(default_factory=dict[Key, _Process])
    _seen: set[Key] = field(default_factory=set[Key])
    _left_out: dict[Key, list[str]] = field(default_factory=dict[Key, list[str]])

    def execute(self, start: Start, words: Sequence[str], withheld: Withheld) -> int | None:
        """Run a replay. Returns its exit status, negative for a signal; None if it has to be started
        cold.

        ``words``: the words after ``replay``. The scratch folder of ``start`` receives its tapes, its
        output (``stdout``, ``stderr``) and what `isolation.enforced` reads.
        """
        scratch, environ = start.scratch, start.environ
        key = start.interpreter, str(start.folder), frozenset(environ.items())
        if key not in self._seen:  # it may be the only replay of this key
            self._seen.add(key)
            return None
        while len(self._left_out.setdefault(key, [])) < SPOILED_AT_MOST:
            process = self._process(key, environ, scratch / "recorded.tape")
            if process is None:
                return None
            try:
                answer = process.ask(
                    words=list(words),
                    now=str(scratch / "now.tape"),
                    isolation=options(
                        scratch,
                        scratch / "enforced",
                        parent=process.child.pid,
                        network=withheld.network,
                        files=withheld.files,
                    ),
                    stdout=str(scratch / "stdout"),
                    stderr=str(scratch / "stderr"),
                    told=str(scratch / "told"),
                )
            except BaseException:
                self._drop(key)
                raise
            if "status" in answer:
                return int(answer["status"])
            if "cold" in answer:
                return None
            self._drop(key)
            if "spoiled" not in answer:
                return None
            self._left_out[key].append(str(answer["spoiled"]))
        return None

    def _process(self, key: Key, environ: Mapping[str, str], tape: Path) -> _Process | None:
        process = self._processes.pop(key, None)
        if process is None:
            if len(self._processes) >= AT_MOST:
                self._drop(next(iter(self._processes)))
            process = self._started(key, environ, tape)
        if process is not None:
            self._processes[key] = process  # re-insert as most recently used, so that it is evicted last
        return process

    def _started(self, key: Key, environ: Mapping[str, str], tape: Path) -> _Process | None:
        interpreter, cwd, _ = key
        folder = tempfile.mkdtemp(prefix="playhead-warm-")
        shutil.copyfile(tape, Path(folder, "recorded.tape"))
        mine, its = socket.socketpair()
        words = isolated(Path(folder), Path(folder, "enforced"), network=False, files=False)
        words += [interpreter, "-m", "playhead_instrumentation", "warm", "--control", str(its.fileno())]
        words += ["--tape", f"{folder}/recorded.tape", "--scratch", folder, "--isolation", str(PROGRAM)]
        for package in self._left_out[key]:
            words += ["--leave-out", package]
        try:
            with open(Path(folder, "stdout"), "w+b") as said:
                child = subprocess.Popen(
                    words,
                    cwd=cwd,
                    env=dict(environ),
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    pass_fds=[its.fileno()],
                )
        except OSError:
            mine.close()
            shutil.rmtree(folder, ignore_errors=True)
            return None
        finally:
            its.close()
        return _Process(child, mine, mine.makefile("rb"), folder)

    def _drop(self, key: Key) -> None:
        process = self._processes.pop(key, None)
        if process is not None:
            process.end()

    def close(self) -> None:
        """End all warm processes. Idempotent."""
        for key in list(self._processes):
            self._drop(key)
