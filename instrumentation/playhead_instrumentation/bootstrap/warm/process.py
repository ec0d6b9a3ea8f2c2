"""A process from which replays are forked, with the libraries that they import already loaded.

It is a replay that has not begun: every boundary is patched, and nothing has run. What the program is
known to import is imported first, under the same patches, and hidden until a replay imports it
(`withheld_modules`). What it is not known to import, a fork imports itself and reports; it is imported
here afterwards. An import may have no other effect than the
module itself: a module that reads a clock, opens a file or starts a thread during its import is left to
each replay, since the values it got here would belong to another run. The program's own modules are
never imported here.

Requests are lines of JSON on a socket: ``{"words", "now", "isolation", "stdout", "stderr", "told"}``.
The reply is ``{"status"}`` when the replay has ended, ``{"cold"}`` when it has to be started in another
way, and ``{"spoiled": PACKAGE}`` when this process is no longer usable because that package had an
effect.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.bootstrap.replay_process import load
from playhead_instrumentation.bootstrap.start import start_recording
from playhead_instrumentation.bootstrap.warm.withheld_modules import WithheldModules
from playhead_instrumentation.patching import lanes, unpatched
from playhead_instrumentation.recorder.tape_writer import TapeWriter
from playhead_instrumentation.session.options import Rerun

# The originals, taken before boundaries are patched.
_fork: Final = os.fork
_waitpid: Final = os.waitpid
_open: Final = os.open
_close: Final = os.close
_write: Final = os.write

COLD: Final = "-"
"""Content of the file of imported modules when the replay has to be started cold."""

ISOLATED: Final = "playhead_replay.runner.isolated"
"""Name of the package that isolates a process from network and files; boundaries know it by it."""


def wait(words: list[str]) -> list[str]:
    """Serve until the other side closes. Returns only in forks, each with the words of its replay."""
    parser = argparse.ArgumentParser(prog="python -m playhead_instrumentation warm")
    parser.add_argument("--control", type=int, required=True, help="descriptor of a socket")
    parser.add_argument("--tape", type=Path, required=True, help="the tape of a replay that is to come")
    parser.add_argument("--scratch", required=True, help="an empty folder")
    parser.add_argument("--isolation", type=Path, required=True, help="the folder of ISOLATED")
    parser.add_argument("--ahead", type=Path, required=True, help="a file of modules to import first")
    parser.add_argument("--leave-out", action="append", default=[], help="a package not to import")
    asked = parser.parse_args(words)
    isolated = _isolation(asked.isolation)
    sink = TapeWriter(Path(os.devnull))
    start_recording(sink=sink, rerun=Rerun(load(asked.tape), scratch=asked.scratch, is_warm=True))
    waiting = _Waiting(asked.control, sink, isolated, frozenset(asked.leave_out))
    return waiting.serve(asked.ahead.read_text("utf-8").split())


class _Waiting:
    """The waiting process, and each fork of it before its program begins."""

    def __init__(
        self, control: int, sink: TapeWriter, isolated: ModuleType, left_out: frozenset[str]
    ) -> None:
        self._control = control
        self._sink = sink
        self._isolated: Any = isolated
        self._left_out = left_out
        self._told = Path()
        self._kept_back = WithheldModules(self._part)

    def serve(self, ahead: list[str]) -> list[str]:
        """See `wait`. ``ahead``: names of the modules to import first."""
        asked = self._until_forked() if self._import_and_say(ahead) else None
        if asked is None:
            unpatched.exit_at_once(0)  # the exit handlers are those of a replay
        self._begin(asked)
        return asked["words"]

    def _until_forked(self) -> dict[str, Any] | None:
        """In a fork: the request. In the waiting process: None at the end."""
        with os.fdopen(os.dup(self._control), "rb", 0) as lines:
            while line := lines.readline():
                asked: dict[str, Any] = json.loads(line)
                self._told, self._sink.of_child = Path(asked["told"]), Path(asked["now"])
                gc.freeze()  # so that garbage collection in a fork does not copy all pages
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
                if not self._import_and_say(told.split()):
                    break
        return None

    def _import_and_say(self, names: list[str]) -> bool:
        """Import modules; False if that has spoiled this process, which is said."""
        spoiled = self._import(names)
        if spoiled:
            self._say(spoiled=spoiled)
        return not spoiled

    def _say(self, **what: Any) -> None:
        _write(self._control, json.dumps(what).encode() + b"\n")

    def _begin(self, asked: dict[str, Any]) -> None:
        """In a fork: take the state of a process that the launcher would have started."""
        _close(self._control)
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = _open(asked[name], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(file, number)
            _close(file)
        if asked["isolation"]:
            self._isolated.enter(asked["isolation"])
        atexit.register(self._tell)

    def _tell(self) -> None:
        """In a fork, at its end: report the modules imported there."""
        self._told.write_text("\n".join(self._kept_back.news()), "utf-8")

    def _part(self) -> None:
        """In a fork: give up, because the fork cannot behave like a fresh process."""
        self._told.write_text(COLD, "utf-8")
        unpatched.exit_at_once(0)

    def _import(self, names: list[str]) -> str:
        """Import modules that are there; gives the package that had an effect, if any."""
        name = ""
        try:
            with self._kept_back.importing() as import_module:
                for name in names:
                    if name.partition(".")[0] not in self._left_out:
                        before = self._traces()
                        try:
                            import_module(name)
                        except ModuleNotFoundError as gone:
                            if gone.name not in (name, name.partition(".")[0]):
                                raise
                        if self._traces() != before:
                            raise ValueError(f"{name} left a trace")
        except Exception:
            return name.partition(".")[0]
        return ""

    def _traces(self) -> tuple[Any, ...]:
        """The state that an import must not change."""
        return (
            self._sink.count,
            lanes.MAIN.counts(),
            threading.active_count(),
            _threads(),
            dict(os.environ),
            list(sys.path),
        )


def _threads() -> int:
    """Number of threads, including those unknown to Python; 0 where the system does not give it."""
    try:
        return os.stat("/proc/self/task").st_nlink
    except OSError:
        return 0


def _isolation(folder: Path) -> ModuleType:
    """The module that isolates a process, from its folder: the agent may not have its distribution."""
    file, places = folder / "__init__.py", [str(folder)]
    spec: Any = importlib.util.spec_from_file_location(ISOLATED, file, submodule_search_locations=places)
    sys.modules[ISOLATED] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return importlib.import_module(f"{ISOLATED}.entering")
