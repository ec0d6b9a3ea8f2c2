"""A process from which replays are forked: the libraries that they import are there already.

It is a replay that has not begun: every boundary is patched, and nothing has run. The first fork
imports all by itself, and tells what. That is imported here too, under the same patches, and kept back
until a replay imports it (`withheld_modules`). A module may leave no other trace than that it is
there: one that reads a clock, asks for a file or starts a thread while it is imported is left to each
replay, since what it was told here would be of another run. The program's own are never imported here.

Over a socket come lines of JSON: ``{"words", "now", "isolation", "stdout", "stderr", "told"}``.
``{"status"}`` goes back when the replay has ended, ``{"cold"}`` when it has to be started otherwise, and
``{"spoiled": PACKAGE}`` when this process is of no use any more, since that package left a trace.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.bootstrap.start import start_recording
from playhead_instrumentation.bootstrap.tape_files import load
from playhead_instrumentation.bootstrap.warm.withheld_modules import KeptBack
from playhead_instrumentation.driver.tape_writer import TapeWriter
from playhead_instrumentation.runtime import lanes

# As they are before boundaries are patched.
_fork: Final = os.fork
_waitpid: Final = os.waitpid
_open: Final = os.open
_close: Final = os.close
_write: Final = os.write

COLD: Final = "-"
"""In the file of what a replay has imported: it has to be started cold."""

ISOLATED: Final = "playhead_replay.launch.isolated"
"""Name of the module that keeps a process from network and files, by which boundaries know it."""


def wait(words: list[str]) -> list[str]:
    """Serve until the other side is gone. Returns in each fork, with the words of its replay."""
    parser = argparse.ArgumentParser(prog="python -m playhead_instrumentation warm")
    parser.add_argument("--control", type=int, required=True, help="descriptor of a socket")
    parser.add_argument("--tape", type=Path, required=True, help="the tape of a replay that is to come")
    parser.add_argument("--scratch", required=True, help="an empty folder")
    parser.add_argument("--isolation", type=Path, required=True, help="the file of ISOLATED")
    parser.add_argument("--leave-out", action="append", default=[], help="a package not to import")
    asked = parser.parse_args(words)
    isolated = _module(asked.isolation)
    sink = TapeWriter(Path(os.devnull))
    start_recording(tape=load(asked.tape), sink=sink, scratch=asked.scratch, waits=True)
    return _Waiting(asked.control, sink, isolated, frozenset(asked.leave_out)).serve()


class _Waiting:
    """The process that waits, and each fork of it before its program begins."""

    def __init__(
        self, control: int, sink: TapeWriter, isolated: ModuleType, left_out: frozenset[str]
    ) -> None:
        self._control = control
        self._sink = sink
        self._isolated: Any = isolated
        self._left_out = left_out
        self._told = Path()
        self._kept_back = KeptBack(self._part)

    def serve(self) -> list[str]:
        """See `wait`."""
        asked = self._until_forked()
        if asked is None:
            os._exit(0)  # what is registered for the end is of replays
        self._begin(asked)
        return asked["words"]

    def _until_forked(self) -> dict[str, Any] | None:
        """In a fork what it is for; None in the process that waits."""
        with os.fdopen(os.dup(self._control), "rb", 0) as lines:
            while line := lines.readline():
                asked: dict[str, Any] = json.loads(line)
                self._told, self._sink.of_child = Path(asked["told"]), Path(asked["now"])
                gc.freeze()  # so that the collector of a fork does not copy all pages
                pid = _fork()
                if pid == 0:
                    return asked
                self._sink.of_child = None
                _, status = _waitpid(pid, 0)
                told = self._told.read_text("utf-8") if self._told.exists() else ""
                if told == COLD:
                    self._say(cold=True)
                    continue
                self._say(status=os.waitstatus_to_exitcode(status))
                spoiled = self._import(told.split())
                if spoiled:
                    self._say(spoiled=spoiled)
                    break
        return None

    def _say(self, **what: Any) -> None:
        _write(self._control, json.dumps(what).encode() + b"\n")

    def _begin(self, asked: dict[str, Any]) -> None:
        """In a fork: become what the launcher would have started."""
        _close(self._control)
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = _open(asked[name], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(file, number)
            _close(file)
        if asked["isolation"]:
            self._isolated.enter(asked["isolation"])
        atexit.register(self._tell)

    def _tell(self) -> None:
        """In a fork, at its end: what was imported there."""
        self._told.write_text("\n".join(self._kept_back.news()), "utf-8")

    def _part(self) -> None:
        """In a fork: it cannot go on as it would in a process of its own."""
        self._told.write_text(COLD, "utf-8")
        os._exit(0)

    def _import(self, names: list[str]) -> str:
        """Import what a replay has told; the package that left a trace, if one did."""
        name = ""
        try:
            with self._kept_back.importing() as import_module:
                for name in names:
                    if name.partition(".")[0] not in self._left_out:
                        before = self._traces()
                        import_module(name)
                        if self._traces() != before:
                            raise ValueError(f"{name} left a trace")
        except Exception:
            return name.partition(".")[0]
        return ""

    def _traces(self) -> tuple[Any, ...]:
        """What an import must not change."""
        return (
            self._sink.count,
            lanes.MAIN.counts(),
            threading.active_count(),
            _threads(),
            dict(os.environ),
            list(sys.path),
        )


def _threads() -> int:
    """Threads, also those that Python does not know of; 0 where the system does not tell."""
    try:
        return os.stat("/proc/self/task").st_nlink
    except OSError:
        return 0


def _module(path: Path) -> ModuleType:
    spec: Any = importlib.util.spec_from_file_location(ISOLATED, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
