"""One child process: how it was started, what the program learned of it, and what it changed.

It is an exchange of kind ``process``. Its parts are what the program learned, in that order: bytes of a
stream, the end of a stream, or that the child still ran. The end has the exit status and the changes in
the workspace; pieces of a stream may follow it. The edges (`popen`, `pipes`, `asyncio_transport`,
`os_calls`) only move the bytes.
"""

from __future__ import annotations

import errno
import itertools
import json
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from playhead_instrumentation.boundaries.process import child_environment, unpatched
from playhead_instrumentation.boundaries.process.blocked import ProcessBlocked
from playhead_instrumentation.boundaries.process.observed import EXPIRED, KIND, asked
from playhead_instrumentation.boundaries.process.pipes import PipeEnd, end_of
from playhead_instrumentation.boundaries.process.words import Started
from playhead_instrumentation.driver.exceptions import again, record_of
from playhead_instrumentation.driver.gate import Turn
from playhead_instrumentation.driver.verdict import Played, Refused
from playhead_instrumentation.host.files.covered import files_of
from playhead_instrumentation.host.files.workspace import Change, Workspace
from playhead_instrumentation.host.process.far_ends import FarEnds
from playhead_instrumentation.host.process.given_files import GivenFiles
from playhead_instrumentation.host.process.stdin import Stdin
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv.facts import Content, Delivery, EndedHow, Fidelity, Part

RUNNING = "status.running"
STATUS = (RUNNING, EXPIRED)

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Change]).decode

ENDED_BY: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
"""Signals with which a program ends a child that takes too long."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expired:
    """A wait that timed out."""

    timeout: float
    """The timeout that the program was told, in seconds."""


def begin(session: Session, started: Started) -> Child | None:
    """Ask the driver for a process; None where that failed and the world may answer.

    Raises `ProcessBlocked` where neither a tape nor the world answers.
    """
    try:
        session.settle()
        child = Child(session, started)
    except Exception as problem:
        log.debug("playhead could not record the start of a process", exc_info=True)
        if session.driver.closed:
            raise ProcessBlocked(started.key, "it could not be looked up on the tape") from problem
        return None
    child.admit()
    return child


class Child:
    """The state of one open exchange with a child process. Safe from any thread."""

    def __init__(self, session: Session, started: Started) -> None:
        self.key = started.key
        self.pid = 0
        self.asynchronous = False
        """Whether an event loop delivers its events."""
        self.feeder: Any = None
        """Replay: the task of its event loop that delivers its events."""
        self.far: Final = FarEnds(self._drain)
        """Replay: the other ends of its pipes."""
        self.files: Final = GivenFiles(self)
        self.beside = 0
        """Replay: pid of a fork that runs for real; 0: none."""
        self.terminal: PipeEnd | None = None
        """Our end of the terminal on which it runs."""
        self.own_group = False
        """Whether it leads a process group."""
        self.runs = False
        """Whether it was started."""
        self.told: BaseException | None = None
        """The last error by which the program learned that a wait timed out."""
        self.refusal: ProcessBlocked | None = None
        """Replay: why nothing answers any more."""
        self._session = session
        self._lock = threading.RLock()
        self._ended: set[str] = set()
        self._left: dict[str, bytes] = {}
        self._scrubs: dict[str, Any] = {}
        self._before: Any = None
        self.signalled = False
        """Whether the program has sent it a signal."""
        self._unlooked = ""
        self.call = asked(session, started)
        session.opened(self)
        verdict = self.call.verdict
        self.played: Final = verdict if isinstance(verdict, Played) else None
        self.observed: Final = self.played is not None and not session.has("processes.talk")
        """Replay: whether the tape has only what the program read from it, and its exit status."""
        self._due: dict[str, deque[int]] = {}
        self._stdin = Stdin(None if self.observed else self.played)
        if self.played is not None:
            for index, part in enumerate(self.played.exchange.parts):
                self._due.setdefault(stream_of(part), deque()).append(index)
        else:
            files = files_of(session.driver) if session.has("processes.talk") else None
            self._before = None if files is None else files.look()

    def admit(self) -> None:
        """Raise `ProcessBlocked` where nothing answers."""
        verdict = self.call.verdict
        if isinstance(verdict, Refused):
            self.call.end("error", None, record_of(verdict.error, str))
            self._session.closed(self)
            raise ProcessBlocked(self.key, verdict.error.cause or verdict.error.what) from None
        played = self.played
        if played is not None and (unseen := played.exchange.ask.details.get(a.PLAYHEAD_PROCESS_UNSEEN)):
            streams = " and ".join(map(str, unseen))
            self.block(f"its {streams} went where no recording sees it")

    def block(self, why: str) -> None:
        """Report that the recording does not answer, and raise `ProcessBlocked`."""
        error = self.refusal = ProcessBlocked(self.key, why)
        self._session.driver.effect(KIND, f"{self.key}: {why}", fidelity=Fidelity.BLOCKED)
        self._end("error", None, None)
        raise error

    @property
    def passes(self) -> bool:
        """Whether it is no longer recorded: the session is over, or this process is a fork of ours."""
        return current() is not self._session or self.call.inherited

    def environment(self, env: Any) -> Any:
        """The environment for a child that was given ``env`` (None: ours), plus its trace context."""
        told = child_environment.environment(env, str(self.call.id))
        return os.environ if told is None else told

    def execs(self) -> AbstractContextManager[None]:
        """Context for a fork that only executes another program: that fork is not recorded."""
        return self._session.process.forks("", execs=True)

    # Start

    def failed(self, error: BaseException) -> None:
        """The child could not be started."""
        at = self.call.arrive().wait() if isinstance(error, Exception) else None
        record = record_of(error, self._session.redactor.text)
        if isinstance(error, OSError) and error.errno is not None:
            record.args[:] = [error.errno, error.strerror, _plain(error.filename)]
        self.call.end("error", at, record)
        self._session.closed(self)

    def started(self, pid: int) -> None:
        """The child runs."""
        self.pid, self.runs = pid, True
        if pid:
            CHILDREN[pid] = self
        self.call.head({a.PROCESS_PID: pid}, None)

    def start_again(self) -> int:
        """Replay: the recorded pid. Raises the recorded error."""
        assert self.played is not None
        recorded = self.played.exchange
        if not recorded.head:
            end = recorded.end
            if self.observed and (end is None or end.error is None):
                told = 0 if end is None else int(end.values.get(a.PROCESS_PID, 0))
                self.started(told or next(_pids))
                return self.pid
            if end is None or end.error is None:
                self.block("its start was not recorded")
                raise AssertionError
            at = self.call.arrive().wait()
            error = again(end.error, OSError)
            self.call.end("error", at, end.error)
            self._session.closed(self)
            raise error
        self.started(int(recorded.head[a.PROCESS_PID]))
        return self.pid

    # Output

    def read(self, stream: str, size: int, live: Callable[[int], bytes | None]) -> bytes | None:
        """Read at most ``size`` bytes of a stream; empty at its end, None where no data is there yet."""
        if size == 0:
            return b""
        if self.played is not None:
            return self._read_again(stream, size)
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
        at = self.call.arrive().wait()
        self.learned(stream, data, at)
        return data

    def _read_again(self, stream: str, size: int) -> bytes | None:
        left = self._left.get(stream, b"")
        if not left:
            if stream in self._ended:
                return b""
            self.answers()
            index, name = self.next((stream, f"{stream}.none"))
            if name != stream and index is not None:
                self.took(index)
                return None
            if index is None:
                if self.observed:  # the stream's end; or the program reads more than when recorded
                    self._ended.add(stream)
                    return b""
                self.call.never().wait()
                return b""
            at = self.call.arrive(index + 1).wait()
            left = self.took(index, at)
        self._left[stream] = left[size:]
        return left[:size]

    def next(self, streams: Iterable[str]) -> tuple[int | None, str]:
        """Replay: index of the next part of these streams, and its stream; (None, "") if there is
        none."""
        with self._lock:
            found = [(due[0], name) for name in streams if (due := self._due.get(name))]
        return min(found) if found else (None, "")

    def took(self, index: int, at: Delivery | None = None) -> bytes:
        """Replay: deliver a part of the recording to the program; its bytes."""
        assert self.played is not None
        name = stream_of(self.played.exchange.parts[index])
        with self._lock:
            self._due[name].remove(index)
        data = self.played.part(index)
        self.learned(name, data, at)
        self.offer()
        return data

    def end_stream(self, stream: str) -> None:
        """Replay: note the end of a stream that an event loop reports to the program."""
        with self._lock:
            self._ended.add(stream)

    def learned(self, stream: str, data: bytes, at: Delivery | None, offset: int | None = None) -> None:
        """Put on the tape what the program learned of the child."""
        more: dict[str, Any] = {a.PLAYHEAD_PROCESS_STREAM: stream}
        if offset is not None:
            more[a.PLAYHEAD_PROCESS_OFFSET] = offset
        with self._lock:
            self.call.scrub = None if self.played is not None else self._scrub(stream)
            self.call.part(data, at, more)
            if not data and stream in ("stdout", "stderr"):
                self._ended.add(stream)

    def _scrub(self, stream: str) -> Any:
        if stream not in self._scrubs:
            self._scrubs[stream] = self._session.redactor.response("", "")
        return self._scrubs[stream]

    # Input

    def write(self, data: Any, live: Callable[[], int | None]) -> int | None:
        """Write to the child's stdin; the number of bytes taken, None where there is no room."""
        if self.played is None:
            try:
                count = live()
            except BrokenPipeError:
                self.learned("stdin.broken", b"", self.call.arrive().wait())
                raise
            if count:
                self.call.sent(bytes(memoryview(data).cast("B")[:count]))
            return count
        whole = bytes(memoryview(data).cast("B"))
        self.answers()
        if self.observed:  # its input was not recorded
            self.call.sent(whole)
            return len(whole)
        room = self._stdin.room()
        if room <= 0 and whole and (index := self.next(("stdin.broken",))[0]) is not None:
            self.took(index, self.call.arrive(index + 1).wait())
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        taken = whole
        if 0 < room < len(whole) and not self._stdin.closed:
            taken = whole[:room]
        self._differs(self._stdin.take(self.call.sent(taken)))
        return len(taken)

    def takes_more(self) -> bool:
        """Replay: whether the child takes more stdin, or it is closed or broken."""
        if self.observed:
            return True
        broken, _ = self.next(("stdin.broken",))
        return self._stdin.room() > 0 or self._stdin.closed or broken is not None

    def closes(self, stream: str) -> None:
        """The program closes a pipe to the child."""
        self.far.let_go(stream)
        if self.passes or not self.runs or stream in self._ended:
            return
        if stream != "stdin":
            self._ended.add(stream)
            with self._lock:
                left = [*self._due.pop(stream, ()), *self._due.pop(f"{stream}.none", ())]
            self.call.skip(index + 1 for index in left)
        else:
            self._ended.add("stdin")
            if self.refusal is None:
                self.call.sent(b"", {a.PLAYHEAD_PROCESS_STREAM: "stdin"})
                self._differs(self._stdin.end())

    def _differs(self, difference: str) -> None:
        if difference:
            self.block(f"its stdin differs {difference}")

    def answers(self) -> None:
        """Replay: raise the refusal where nothing answers any more."""
        if self.refusal is not None:
            raise self.refusal

    # Status and end

    def running(self) -> None:
        """The program was told that the child still runs."""
        self.learned(RUNNING, b"", None)

    def expired(self, error: BaseException) -> None:
        """A wait of the program for the child timed out."""
        if self.told is not error:
            self.told = error
            timeout = json.dumps(getattr(error, "timeout", None)).encode()
            self.learned(EXPIRED, timeout, self.call.arrive().wait())

    def exited(self, status: int, at: Delivery | None = None, *, in_turn: bool = False) -> None:
        """The child has ended. ``status``: as `subprocess` gives it, negative for a signal."""
        if self.call.ended is not None or self.passes:
            return
        if in_turn:
            at = self.call.arrive().wait()
        body: Content | None = None
        if self._before is not None:
            try:
                self.files.tell()
                body = self._changes()
            except Exception:
                log.debug("playhead could not see what a process did", exc_info=True)
        self._end("complete", at, status, body)

    def _workspace(self) -> Workspace | None:
        """The workspace of the run; in a replay, the one in the scratch folder."""
        files = files_of(self._session.driver)
        return None if files is None else files.workspace

    def _changes(self) -> Content | None:
        """The changes in the workspace since the child was started."""
        redactor, workspace = self._session.redactor, self._workspace()
        changes: list[Change] = []
        found, self._unlooked = ((), "") if workspace is None else workspace.compared(self._before)
        for change in found:
            data = change.data if redactor.content or change.what == "link" else None
            if data is not None and change.what == "written":
                data = redactor.response("", "").chunk(data)
            changes.append(msgspec.structs.replace(change, data=data))
        return Content.of(_encode(changes)) if changes else None

    def poll(self) -> int | Expired | None:
        """Replay: the exit status, if the program learns of the end now; else None or `Expired`."""
        self.answers()
        index, _ = self.next(STATUS)
        if index is not None:
            self.took(index)
            return None
        if self.observed and self.beside and self._end_due() is None:
            return self._ends_beside(os.WNOHANG)
        if self.observed and not self._session.driver.gate.ripe(self._exit_due()):
            return None
        return self.wait() if self._end_due() is not None else None

    def poll_quietly(self) -> int | None:
        """Replay: the exit status, where a finalizer learned it."""
        assert self.played is not None
        end = self.played.exchange.end
        if end is None or end.how != "complete" or end.delivery is not None:
            return None
        return self.exits(None)

    def wait(self, timeout: float | None = None) -> int | Expired:
        """Replay: wait for the end; the exit status, or `Expired`. ``timeout``: in seconds."""
        self.answers()
        if self.observed and (timeout is not None or self._end_due() is None):
            if timeout is None and self.beside:
                status = self._ends_beside(0)
                assert status is not None
                return status
            if timeout is None:
                self.block("how it ended was not recorded: level causal records it")
            elif self._outlasts():
                self._session.driver.gate.never(self.call.id, timeout).wait()
                return Expired(timeout)
        while True:
            index, name = self.next(STATUS)
            if index is None:
                break
            if name == EXPIRED and timeout is not None:
                return self.expires(index)
            if name == EXPIRED and self._end_due() is None:
                break
            self.took(index)
            self.call.skip([index + 1])
        turn = self.exit_turn()
        return self.exits(turn.wait() if turn is not None else None)

    def expires(self, index: int) -> Expired:
        """Replay: the timed-out wait in a part of the recording."""
        return Expired(json.loads(self.took(index, self.call.arrive(index + 1).wait())))

    def needs_nobody(self) -> bool:
        """Replay: whether a signal ended it, so that nothing of it is missing."""
        assert self.played is not None
        end = self.played.exchange.end
        return end is not None and int(end.values.get(a.PROCESS_EXIT_CODE, 0)) < 0

    def exit_turn(self) -> Turn | None:
        """Replay: the turn of its end; None where the end had no turn."""
        assert self.played is not None
        end = self.played.exchange.end
        if end is None or end.how != "complete":
            return self.call.never()
        return None if end.delivery is None else self.call.arrive(len(self.played.exchange.parts) + 1)

    def _end_due(self) -> int | None:
        assert self.played is not None
        end = self.played.exchange.end
        return None if end is None or end.how != "complete" else len(self.played.exchange.parts)

    def _ends_beside(self, options: int) -> int | None:
        """Replay: exit status of the process that runs in its place, where the tape has none."""
        assert unpatched.waitpid is not None
        self._session.driver.gate.ripe(None)
        with lanes.Outside():
            pid, status = unpatched.waitpid(self.beside, options)
        if not pid:
            return None
        self.beside = 0
        return os.waitstatus_to_exitcode(status)

    def _outlasts(self) -> bool:
        """Replay: whether it runs until the program ends it, and the program has not."""
        assert self.played is not None
        end = self.played.exchange.end
        if end is None or end.how != "complete":
            return True
        return not self.signalled and -int(end.values.get(a.PROCESS_EXIT_CODE, 0)) in ENDED_BY

    def _exit_due(self) -> Delivery | None:
        assert self.played is not None
        end = self.played.exchange.end
        return end.delivery if end is not None and end.how == "complete" else None

    def exits(self, at: Delivery | None) -> int:
        """Replay: deliver its end with all its changes; the exit status."""
        assert self.played is not None
        recorded = self.played.exchange.end
        assert recorded is not None
        status = int(recorded.values[a.PROCESS_EXIT_CODE])
        if self.call.ended is None:
            self._differs(self._stdin.at_exit())
            workspace = self._workspace()
            if recorded.body is not None and workspace is not None and workspace.elsewhere:
                workspace.apply(_decode(self.played.read(recorded.body)))
            self.files.write_again()
            self._end("complete", at, status, recorded.body)
        return status

    def _end(
        self, how: EndedHow, at: Delivery | None, status: int | None, body: Content | None = None
    ) -> None:
        values: dict[str, Any] = {} if status is None else {a.PROCESS_EXIT_CODE: status}
        if self._unlooked:
            values[a.PLAYHEAD_PROCESS_UNLOOKED] = self._unlooked
        if body is not None and self.played is not None:
            body = Content(body.digest, body.size)
        self.call.end(how, at, values=values, body=body, goes_on=how == "complete")
        self._session.closed(self)
        if CHILDREN.get(self.pid) is self and status is not None and self.played is None:
            del CHILDREN[self.pid]

    def abandoned(self) -> None:
        """The program ends before the child. Safe in a finalizer."""
        self._end("abandoned", None, None)
        self.far.release()

    def offer(self) -> None:
        """Replay: wake up the waiters for the next event."""
        if self.played is not None and not self.asynchronous and self.far:
            self.far.offer(self.next(("stdout", "stderr", *STATUS))[1], self._ended)

    def _drain(self, stream: str) -> None:
        end = end_of(self, stream)
        if end is not None:
            end.drain()


_pids: Final = itertools.count(1 << 22)
"""Pids for children whose pid is on no tape: no system uses such numbers."""

CHILDREN: Final[dict[int, Child]] = {}
"""Running children of this process, by pid."""


def stream_of(part: Part) -> str:
    """The stream of a part of such an exchange."""
    return str(part.attributes.get(a.PLAYHEAD_PROCESS_STREAM, "stdout"))


def _plain(name: Any) -> Any:
    return name if name is None or isinstance(name, int) else os.fsdecode(name)
