"""Processes that wait with the libraries of a program imported, and are forked for each replay.

Importing an SDK takes longer than all else that a short run does. A suite of goldens replays many runs
of few programs, so one process imports, and each replay is a fork of it. There is one per interpreter,
folder and environment: what a module sees while it is imported is what it would see in a process of its
own.
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

from playhead_replay.launch.isolation import SCRIPT, isolated, options

AT_MOST = 4
"""So many wait at a time."""

SPOILED_AT_MOST = 3
"""After so many packages that leave a trace when they are imported, none is imported ahead."""

Key: TypeAlias = tuple[str, str, frozenset[tuple[str, str]]]


@dataclass(slots=True)
class _Process:
    """One that waits."""

    child: subprocess.Popen[bytes]
    control: socket.socket
    said: Any
    folder: str

    def ask(self, **what: Any) -> dict[str, Any]:
        """What it answers; empty when it is gone."""
        line = b""
        with contextlib.suppress(BrokenPipeError):  # what it said before it went can be read
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
    """What waits, for the replays of one process. Not to be used by two threads at once."""

    _processes: dict[Key, _Process] = field(default_factory=dict[Key, _Process])
    _seen: set[Key] = field(default_factory=set[Key])
    _left_out: dict[Key, list[str]] = field(default_factory=dict[Key, list[str]])

    def execute(
        self,
        interpreter: str,
        words: Sequence[str],
        *,
        folder: Path,
        environ: Mapping[str, str],
        scratch: Path,
        network: bool,
        files: bool,
    ) -> int | None:
        """Run a replay: the exit status, negative for a signal; None where it has to be started cold.

        ``words``: behind ``replay``. In ``scratch`` are its tapes, what it says (``stdout``, ``stderr``)
        and what `isolation.enforced` reads. ``network``, ``files``: see `isolation.isolated`.
        """
        key = interpreter, str(folder), frozenset(environ.items())
        if key not in self._seen:  # it may be the only one
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
                        network=network,
                        files=files,
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
            self._processes[key] = process  # the last one used is the last one to go
        return process

    def _started(self, key: Key, environ: Mapping[str, str], tape: Path) -> _Process | None:
        interpreter, cwd, _ = key
        folder = tempfile.mkdtemp(prefix="playhead-warm-")
        shutil.copyfile(tape, Path(folder, "recorded.tape"))
        mine, its = socket.socketpair()
        words = isolated(Path(folder), Path(folder, "enforced"), network=False, files=False)
        words += [interpreter, "-m", "playhead_instrumentation", "warm", "--control", str(its.fileno())]
        words += ["--tape", f"{folder}/recorded.tape", "--scratch", folder, "--isolation", str(SCRIPT)]
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
        """End them all. Idempotent."""
        for key in list(self._processes):
            self._drop(key)
