"""Snapshots of the working folder: asked for by anybody, taken by a thread, put on the tape.

An entry point names the package that takes them. Only the end of the process waits for the thread, and
not for long. The thread takes at most a tenth of a processor.
"""

from __future__ import annotations

import os
import time
from typing import Any, Final

from opentelemetry.util._importlib_metadata import (
    entry_points,  # pyright: ignore[reportUnknownVariableType]
)

from playhead_core.errors import ConfigurationError
from playhead_core.facts import Content, Fact
from playhead_core.process.interpreter_threads import Bell, Thread
from playhead_core.process.own_messages import Log
from playhead_core.workspace import ENTRY_POINT, SnapshotTaker, encode_changes
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.lanes import own_wait
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.bodies import Bodies
from playhead_instrumentation.recorder.call import SpanIds, ids_of
from playhead_instrumentation.recorder.driver import span_around
from playhead_instrumentation.session.environment import own_folders
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)

END_S: Final = 2.0
"""How long the end of the process waits for the last snapshot, in seconds."""

RESTS: Final = 9
"""For how many times the processor time of a snapshot the thread rests after it."""

_used_s: Final = time.thread_time


class Snapshots:
    """The snapshots of this process. Safe from any thread; a forked child takes none."""

    def __init__(self, session: Session, workspace: SnapshotTaker) -> None:
        self._session: Final = session
        self._sink: Final = session.sink
        self._workspace: Final = workspace
        self._bodies: Final = Bodies(session.redactor.body)
        self._held: set[bytes] = set()
        self._asked: tuple[str, SpanIds] | None = None
        self._bell: Final = Bell()
        self._ending: Final = Bell()
        self._pid: Final = os.getpid()
        self._ends_s: float | None = None
        """When the process, which ends, waits no longer; in seconds of the real clock."""
        self._thread: Final = Thread("playhead-workspace", self._run)

    def start(self) -> None:
        """Begin with a snapshot of the start. RuntimeError where the system has no thread."""
        self._asked = "start", ids_of(None)
        self._bell.ring()
        self._thread.start()

    def ask(self, label: str) -> None:
        """Take one soon, in the current span. One that is asked for and not begun is the same one."""
        if os.getpid() != self._pid or self._ends_s is not None:
            return
        asked = self._asked
        if asked is None or asked[0] != "start":
            self._asked = label, ids_of(span_around())
        self._bell.ring()

    def close(self) -> None:
        """The process ends: take the last one, if there is time for it."""
        if os.getpid() != self._pid or self._ends_s is not None:
            return
        self._asked = "end", ids_of(None)
        self._ends_s = REAL.now_s() + END_S
        self._bell.ring()
        self._ending.ring()
        with own_wait():
            self._thread.join(END_S)

    def _run(self) -> None:
        with lanes.Shadow():
            rests_s = 0.0
            while True:
                self._bell.wait()
                if rests_s and self._ends_s is None:
                    self._ending.wait(rests_s)
                asked, self._asked = self._asked, None
                began_s = _used_s()
                if asked is not None:
                    try:
                        self._take(*asked)
                    except Exception:
                        log.debug("playhead could not take a snapshot", exc_info=True)
                rests_s = RESTS * (_used_s() - began_s)
                if self._ends_s is not None and self._asked is None:
                    return

    def _take(self, label: str, ids: SpanIds) -> None:
        begun_ns = REAL.time_ns()
        taken = self._workspace.take(self._kept, self._is_over)
        at: dict[str, Any] = {
            a.PLAYHEAD_WORKSPACE_LABEL: label,
            a.PLAYHEAD_WORKSPACE_BEGUN_NS: begun_ns,
            a.PLAYHEAD_WORKSPACE_FILES: taken.files,
            a.PLAYHEAD_WORKSPACE_SIZE_BYTES: taken.size_bytes,
        }
        if taken.left_out:
            at[a.PLAYHEAD_WORKSPACE_LEFT_OUT] = [
                self._session.redactor.text(one) for one in taken.left_out
            ]
        self._append(e.PLAYHEAD_WORKSPACE, ids, at, Content.of(encode_changes(taken.changes)))

    def _kept(self, data: bytes) -> tuple[bytes, int, int] | None:
        if not self._session.redactor.content:
            return None
        kept, content, count = self._bodies.written(data)
        if content.digest not in self._held:
            self._append(e.PLAYHEAD_WORKSPACE_FILE, ids_of(None), {}, content)
            self._held.add(content.digest)
        return content.digest, len(kept), count

    def _append(self, name: str, ids: SpanIds, at: dict[str, Any], body: Content) -> None:
        self._sink.append(Fact(REAL.time_ns(), lanes.MAIN.hash, name, *ids, attributes=at, body=body))

    def _is_over(self) -> bool:
        return self._ends_s is not None and REAL.now_s() > self._ends_s


def begin(session: Session) -> None:
    """Begin to take snapshots as the setting says. `ConfigurationError` where nothing takes them."""
    found = next(iter(entry_points(group=ENTRY_POINT)), None)
    if found is None:
        raise ConfigurationError("nothing takes snapshots here", hint="pip install playhead-agent")
    limit_bytes = session.settings.file_limit_bytes
    workspace: SnapshotTaker = found.load()(os.getcwd(), own_folders(session.settings), limit_bytes)
    snapshots = session.snapshots = Snapshots(session, workspace)
    if session.settings.workspace == "steps":
        session.before_asking(lambda: snapshots.ask("step"))
    snapshots.start()
