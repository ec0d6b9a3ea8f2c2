"""State of a child process of the program, live or replayed.

It is an exchange of kind ``process``. Its parts are what the program learned, in order: bytes of a
stream, the end of a stream, or that the child still ran. The end has the exit status and the changes in
the workspace; pieces of a stream may follow it.

A `LiveChild` runs. A `ReplayedChild` does not: the tape answers for it. The driver decides which of the
two a program gets (`exchange.begin`). The adapters (`popen`, `asyncio_transport`, `os_calls`, …) only
move the bytes.
"""

from __future__ import annotations

import json
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from playhead_core.facts import Content, Delivery, EndedHow, Part
from playhead_instrumentation.libraries.subprocess import child_environment
from playhead_instrumentation.libraries.subprocess.observed import EXPIRED
from playhead_instrumentation.libraries.subprocess.pipes import PipeEnd
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.exceptions import record_of
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_core.tape.indexed_tapes import IndexedTape

RUNNING: Final = "status.running"
STATUS: Final = (RUNNING, EXPIRED)
"""Names of streams that stand for what a wait or a poll told the program."""

BROKEN: Final = "stdin.broken"
"""Name of the stream that stands for a write that failed: the child has closed its stdin."""
UNREAD: Final = "stdin.unread"
"""The same, learned by an event loop without a write."""

CHILDREN: Final[dict[int, Child]] = {}
"""Running children of this process, by pid."""


class GivenFiles:
    """The regular files of one child, by stream name."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int]] = {}

    def writes_to(self, stream: str, number: int, offset: int) -> None:
        """Note that a stream goes to a regular file, from ``offset`` on. ``number`` is closed here."""
        self._files[stream] = number, offset

    def tell(self, learned: Callable[[str, bytes, None, int], None]) -> None:
        """The child has ended: ``learned(stream, data, None, offset)`` for what it wrote to each."""
        for stream, (number, offset) in self._taken():
            try:
                end = os.lseek(number, 0, os.SEEK_CUR)
                if end > offset:
                    learned(f"{stream}.file", _between(number, offset, end), None, offset)
            finally:
                os.close(number)

    def write_again(self, pieces: Callable[[str], Iterable[tuple[int, bytes]]]) -> None:
        """Replay: the child has ended; write ``pieces(stream)`` to each, every piece at its offset."""
        for stream, (number, _) in self._taken():
            try:
                for offset, data in pieces(stream):
                    os.lseek(number, offset, os.SEEK_SET)
                    while data:
                        data = data[os.write(number, data) :]
            finally:
                os.close(number)

    def _taken(self) -> Iterator[tuple[str, tuple[int, int]]]:
        while self._files:
            stream = next(iter(self._files))
            yield stream, self._files.pop(stream)


def _between(number: int, start: int, end: int) -> bytes:
    try:
        return os.pread(number, end - start, start)
    except OSError:  # the file is open for writing only
        with open(f"/proc/self/fd/{number}", "rb") as file:
            file.seek(start)
            return file.read(end - start)


class Child:
    """The state of one open exchange with a child process. Safe from any thread."""

    def __init__(self, session: Session, started: ProcessStart, call: Call) -> None:
        self.key = started.key
        self.call: Final = call
        self.pid = 0
        self.asynchronous = False
        """Whether an event loop delivers its events."""
        self.files: Final = GivenFiles()
        """Regular files that it got as stdout or stderr."""
        self.terminal: PipeEnd | None = None
        """Our end of the terminal on which it runs."""
        self.own_group = False
        """Whether it leads a process group."""
        self.runs = False
        """Whether it was started."""
        self.signalled = False
        """Whether the program has sent it a signal."""
        self._session = session
        self._lock = threading.RLock()
        self._ended: set[str] = set()
        """Streams that are at their end, or that the program has closed."""
        session.open_exchanges.add(self)

    @abstractmethod
    def answer(self, live: Callable[..., Any], again: Callable[..., Any], *given: Any) -> Any:
        """What ``live(child, *given)`` does with a child that runs, ``again(child, *given)`` with a
        replayed one. Calls one of the two; returns and raises what it does."""

    def admit(self) -> None:
        """Raise `ProcessBlocked` if the child must not start."""

    @property
    def passes(self) -> bool:
        """Whether it is no longer recorded: the session is over, or this process is a fork of ours."""
        return current() is not self._session or self.call.inherited

    def environment(self, env: Any) -> Any:
        """Return the environment for a child: ``env`` (None: ours) plus its trace context."""
        told = child_environment.environment(env, str(self.call.id))
        return os.environ if told is None else told

    def execs(self) -> AbstractContextManager[None]:
        """Context for a fork that only executes another program: that fork is not recorded."""
        return self._session.process.forks("", execs=True)

    def tape(self) -> IndexedTape | None:
        """Replay: the tape of the process that was started then; None: there is none.

        It may continue after the end of its parent's tape, when this child already runs again.
        """
        origin = self.call.origin
        if origin is None:
            return None
        return self._session.fork_of(origin.instance, str(origin.exchange.id))

    # Start

    def failed(self, error: BaseException) -> None:
        """The child could not be started."""
        at = self.call.arrive().wait() if isinstance(error, Exception) else None
        record = record_of(error, self._session.redactor.text)
        if isinstance(error, OSError) and error.errno is not None:
            name = error.filename
            plain = name if name is None or isinstance(name, int) else os.fsdecode(name)
            record.args[:] = [error.errno, error.strerror, plain]
        self.call.end("error", at, record)
        self._session.open_exchanges.discard(self)

    def started(self, pid: int) -> None:
        """The child runs."""
        self.pid, self.runs = pid, True
        if pid:
            CHILDREN[pid] = self
        self.call.head({a.PROCESS_PID: pid}, None)

    # Pipes

    @abstractmethod
    def read(self, stream: str, size: int, live: Callable[[int], bytes | None]) -> bytes | None:
        """Read at most ``size`` bytes of a stream; empty at its end, None if no data is there yet.

        ``live`` does so for real. `BlockingIOError` if it raises that.
        """

    @abstractmethod
    def write(self, data: Any, live: Callable[[], int | None]) -> int | None:
        """Write to the child's stdin; the number of bytes taken, None if there is no room.

        ``live`` does so for real. `BrokenPipeError` if the child reads no more.
        """

    @abstractmethod
    def closes(self, stream: str) -> None:
        """The program closes a pipe to the child."""

    def _closing(self, stream: str) -> bool:
        """Note that the program closes a pipe. Whether that is to be recorded."""
        if self.passes or not self.runs or stream in self._ended:
            return False
        self._ended.add(stream)
        return True

    def _closed_stdin(self) -> None:
        self.call.sent(b"", {a.PLAYHEAD_PROCESS_STREAM: "stdin"})

    def learned(self, stream: str, data: bytes, at: Delivery | None, offset: int | None = None) -> None:
        """Put on the tape what the program learned of the child.

        ``offset``: of ``data`` in the file to which the child wrote it.
        """
        more: dict[str, Any] = {a.PLAYHEAD_PROCESS_STREAM: stream}
        if offset is not None:
            more[a.PLAYHEAD_PROCESS_OFFSET] = offset
        with self._lock:
            self.call.scrub = self._scrub(stream)
            self.call.part(data, at, more)
            if not data and stream in ("stdout", "stderr"):
                self._ended.add(stream)

    def _scrub(self, stream: str) -> Any:
        """What removes secrets from a stream; None: there are none left."""
        return None

    def offer(self) -> None:
        """Replay: wake up the waiters for the next event."""

    # Status and end

    @property
    def due(self) -> tuple[int, int] | None:
        """Replay: position of its end on the tape, to be compared with others; None: not known."""
        return None

    @abstractmethod
    def exited(self, status: int, *, in_turn: bool = False) -> None:
        """The child has ended. ``status``: as `subprocess` gives it, negative for a signal.

        ``in_turn``: the program learns of it, and waits for its permit to do so.
        """

    @abstractmethod
    def abandoned(self) -> None:
        """The program ends before the child. Safe in a finalizer."""

    def _end(
        self,
        how: EndedHow,
        at: Delivery | None,
        values: Mapping[str, Any] | None = None,
        body: Content | None = None,
    ) -> None:
        self.call.end(how, at, values=values, body=body, goes_on=how == "complete")
        self._session.open_exchanges.discard(self)


def stream_of(part: Part) -> str:
    """Return the stream of a part of such an exchange."""
    return str(part.attributes.get(a.PLAYHEAD_PROCESS_STREAM, "stdout"))


def timeout_text(error: BaseException) -> bytes:
    """Return the timeout of an expired wait, in seconds, as the part of an exchange."""
    return json.dumps(getattr(error, "timeout", None)).encode()
