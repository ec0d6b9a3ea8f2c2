"""Processes that have imported the libraries of a program, and are forked for each replay.

Importing an SDK takes longer than everything else a short run does. A suite of goldens replays many runs
of few programs, so one process does the imports and each replay runs in a fork of it. There is one such
process per interpreter, folder and environment, so a module sees the same environment during its import
as in a process of its own. It imports what the program imported when it was last replayed, before the
first fork; what is not known then is imported after the first replay that imports it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from playhead_replay.runner.isolation import PROGRAM, Withheld, isolated, options
from playhead_replay.runner.known_imports import KnownImports
from playhead_replay.runner.process_start import Start

AT_MOST = 4
"""Largest number of warm processes at a time."""

SPOILED_AT_MOST = 3
"""After so many processes with the same environment that an import has spoiled, no more are started."""

TOLD = "told"
"""Name of the file in the scratch folder in which a fork reports what it has imported."""

Key: TypeAlias = tuple[str, tuple[str, ...], str, frozenset[tuple[str, str]]]


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

    known: KnownImports = field(default_factory=KnownImports)
    """What programs import."""
    _processes: dict[Key, _Process] = field(default_factory=dict[Key, _Process])
    _spoiled: dict[Key, list[str]] = field(default_factory=dict[Key, list[str]])
    """Packages that spoiled a process."""

    def execute(self, start: Start, words: Sequence[str], withheld: Withheld) -> int | None:
        """Run a replay. Returns its exit status, negative for a signal; None if it has to be started
        cold.

        ``words``: the words after ``replay``. The scratch folder of ``start`` receives its tapes, its
        output (``stdout``, ``stderr``) and what `isolation.enforced` reads.
        """
        scratch = start.scratch
        key = start.interpreter, start.options, str(start.folder), frozenset(start.environ.items())
        spoiled = self._spoiled.setdefault(key, [])
        while len(spoiled) < SPOILED_AT_MOST:
            left_out = sorted({*spoiled, *self.known.of(start).left_out})
            process = self._process(key, start, left_out)
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
                    told=str(scratch / TOLD),
                )
            except BaseException:
                self._drop(key)
                raise
            if "status" in answer:
                self._note(start, left_out)
                return int(answer["status"])
            if "cold" in answer:
                return None
            self._drop(key)
            if "spoiled" not in answer:
                return None
            spoiled.append(str(answer["spoiled"]))
        return None

    def _note(self, start: Start, left_out: Sequence[str]) -> None:
        with contextlib.suppress(OSError):  # it was killed before it could tell
            told = (start.scratch / TOLD).read_text("utf-8").split()
            self.known.note(start, told, left_out)

    def _process(self, key: Key, start: Start, left_out: Sequence[str]) -> _Process | None:
        process = self._processes.pop(key, None)
        if process is None:
            if len(self._processes) >= AT_MOST:
                self._drop(next(iter(self._processes)))
            process = self._started(start, left_out)
        if process is not None:
            self._processes[key] = process  # re-insert as most recently used, so that it is evicted last
        return process

    def _started(self, start: Start, left_out: Sequence[str]) -> _Process | None:
        folder = tempfile.mkdtemp(prefix="playhead-warm-")
        shutil.copyfile(start.scratch / "recorded.tape", Path(folder, "recorded.tape"))
        Path(folder, "ahead").write_text("\n".join(self.known.of(start).modules), "utf-8")
        mine, its = socket.socketpair()
        words = isolated(Path(folder), Path(folder, "enforced"), network=False, files=False)
        words += [start.interpreter, *start.options, "-m", "playhead_instrumentation", "warm"]
        words += ["--control", str(its.fileno()), "--ahead", f"{folder}/ahead"]
        words += ["--tape", f"{folder}/recorded.tape", "--scratch", folder, "--isolation", str(PROGRAM)]
        for package in left_out:
            words += ["--leave-out", package]
        try:
            with open(Path(folder, "stdout"), "w+b") as said:
                child = subprocess.Popen(
                    words,
                    cwd=start.folder,
                    env=start.environ,
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
