"""A child process that runs: what the program learns of it, and what it changes, goes on the tape."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import msgspec

from playhead_core.facts import Content
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.files.changes import Change, encode_changes
from playhead_instrumentation.libraries.files.covered import files_of
from playhead_instrumentation.libraries.files.workspace import Look
from playhead_instrumentation.libraries.subprocess.observed import EXPIRED
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart
from playhead_instrumentation.libraries.subprocess_full.child import (
    BROKEN,
    CHILDREN,
    RUNNING,
    Child,
    timeout_text,
)
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

log = Log(__name__)


class LiveChild(Child):
    """Records a child. Only the operations themselves raise, not their recording."""

    def __init__(self, session: Session, started: ProcessStart, call: Call) -> None:
        super().__init__(session, started, call)
        self._told: BaseException | None = None
        """The last error by which the program learned that a wait timed out."""
        self._scrubs: dict[str, Any] = {}
        self._unlooked = ""
        files = files_of(session.driver) if session.has("processes.talk") else None
        self._before = None if files is None else files.look()

    def answer(self, live: Callable[..., Any], again: Callable[..., Any], *given: Any) -> Any:
        """See `Child.answer`."""
        return live(self, *given)

    def read(self, stream: str, size: int, live: Callable[[int], bytes | None]) -> bytes | None:
        """See `Child.read`."""
        if size == 0:
            return b""
        if stream in self._ended:
            return live(size)
        try:
            with lanes.Outside():
                data = live(size)
        except BlockingIOError:
            self.learned(f"{stream}.none", b"", None)
            raise
        if data is None:
            self.learned(f"{stream}.none", b"", None)
            return None
        self.arrived(stream, data)
        return data

    def write(self, data: Any, live: Callable[[], int | None]) -> int | None:
        """See `Child.write`."""
        try:
            count = live()
        except BrokenPipeError:
            self.arrived(BROKEN, b"")
            raise
        if count:
            self.call.sent(bytes(memoryview(data).cast("B")[:count]))
        return count

    def closes(self, stream: str) -> None:
        """See `Child.closes`."""
        if self._closing(stream) and stream == "stdin":
            self._closed_stdin()

    def arrived(self, stream: str, data: bytes) -> None:
        """The program learns something in its turn.

        Threads that read different streams are recorded in the order of their permits. At strict only
        one of them runs: it would wait for its turn with the lock that the others need.
        """
        with nullcontext() if self._session.driver.gate.level == "strict" else self._lock:
            self.learned(stream, data, self.call.arrive().wait())

    def _scrub(self, stream: str) -> Any:
        if stream not in self._scrubs:
            self._scrubs[stream] = self._session.redactor.response("", "")
        return self._scrubs[stream]

    def running(self) -> None:
        """The program was told that the child still runs."""
        self.learned(RUNNING, b"", None)

    def expired(self, error: BaseException) -> None:
        """A wait of the program for the child timed out."""
        if self._told is not error:
            self._told = error
            self.arrived(EXPIRED, timeout_text(error))

    def exited(self, status: int, *, in_turn: bool = False) -> None:
        """See `Child.exited`."""
        if self.call.ended is not None or self.passes:
            return
        at = self.call.arrive().wait() if in_turn else None
        body: Content | None = None
        if self._before is not None:
            try:
                self.files.tell(self.learned)
                body = self._changes(self._before)
            except Exception:
                log.debug("playhead could not see what a process did", exc_info=True)
        values: dict[str, Any] = {a.PROCESS_EXIT_CODE: status}
        if self._unlooked:
            values[a.PLAYHEAD_PROCESS_UNLOOKED] = self._unlooked
        self._end("complete", at, values, body)
        if CHILDREN.get(self.pid) is self:
            del CHILDREN[self.pid]

    def _changes(self, before: Look) -> Content | None:
        """Return the changes in the workspace since the child was started."""
        redactor, files = self._session.redactor, files_of(self._session.driver)
        changes: list[Change] = []
        found, self._unlooked = ((), "") if files is None else files.workspace.compared(before)
        for change in found:
            data = change.data if redactor.content or change.what == "link" else None
            if data is not None and change.what == "written":
                data = redactor.response("", "").chunk(data)
            changes.append(msgspec.structs.replace(change, data=data))
        return Content.of(encode_changes(changes)) if changes else None

    def abandoned(self) -> None:
        """See `Child.abandoned`."""
        self._end("abandoned", None)
