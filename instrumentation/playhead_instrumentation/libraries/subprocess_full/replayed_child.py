"""A child process of a replay: it does not run, and the program learns of it what is on the tape.

A tape of level ``exchanges`` holds less: what the program read of the child, and its exit status. Then
the child is only *observed*: what it was sent is compared only if the library that talks with it has
recorded that, and its waits are not on the tape.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from playhead_core.facts import Content, Delivery, End, Fidelity
from playhead_instrumentation.libraries.files.changes import decode_changes
from playhead_instrumentation.libraries.files.covered import files_of
from playhead_instrumentation.libraries.subprocess.in_full import ProcessBlocked
from playhead_instrumentation.libraries.subprocess.observed import EXPIRED, KIND
from playhead_instrumentation.libraries.subprocess.pipes import end_of
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart
from playhead_instrumentation.libraries.subprocess_full.child import (
    BROKEN,
    STATUS,
    UNREAD,
    Child,
    stream_of,
)
from playhead_instrumentation.libraries.subprocess_full.far_ends import FarEnds, Stdin
from playhead_instrumentation.patching import lanes, unpatched
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.exceptions import again
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

ENDED_BY: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
"""Signals with which a program ends a child that takes too long."""


@dataclass(frozen=True, slots=True)
class Expired:
    """A wait that timed out."""

    timeout: float
    """The timeout that the program was told, in seconds."""


class ReplayedChild(Child):
    """Answers for a child, in the order of the tape.

    Whatever the program asks, `ProcessBlocked` is raised if the tape does not answer (any more).
    """

    def __init__(
        self, played: PlayedExchange, session: Session, started: ProcessStart, call: Call
    ) -> None:
        super().__init__(session, started, call)
        self.played: Final = played
        self.observed: Final = not session.has("processes.talk")
        """Whether the tape has only what the program read from it, and its exit status."""
        self.feeder: Any = None
        """The task of its event loop that delivers its events."""
        self.far: Final = FarEnds(self._drain)
        """The other ends of its pipes."""
        self.beside = 0
        """Pid of a fork that runs for real in its place; 0: none."""
        self._refusal: ProcessBlocked | None = None
        """Why nothing answers any more."""
        self._left: dict[str, bytes] = {}
        """Of a delivered part, by stream: what the program has not read yet."""
        self._heard: Final = not self.observed or bool(played.exchange.sent)
        """Whether the tape has what it was sent."""
        self._stdin = Stdin(played.exchange.sent)
        self._due: dict[str, deque[int]] = {}
        """Parts that are yet to be delivered, by stream."""
        for index, part in enumerate(played.exchange.parts):
            self._due.setdefault(stream_of(part), deque()).append(index)

    def answer(self, live: Callable[..., Any], again: Callable[..., Any], *given: Any) -> Any:
        """See `Child.answer`."""
        return again(self, *given)

    def admit(self) -> None:
        """Raise `ProcessBlocked` if no recording could see what the child said."""
        if unseen := self.played.exchange.ask.details.get(a.PLAYHEAD_PROCESS_UNSEEN):
            streams = " and ".join(map(str, unseen))
            self.block(f"its {streams} went where no recording sees it")

    def block(self, why: str) -> NoReturn:
        """Report that the recording does not answer, and raise `ProcessBlocked`."""
        error = self._refusal = ProcessBlocked(self.key, why)
        self._session.driver.effect(KIND, f"{self.key}: {why}", fidelity=Fidelity.BLOCKED)
        self._end("error", None)
        raise error

    def answers(self) -> None:
        """Raise the refusal if nothing answers any more."""
        if self._refusal is not None:
            raise self._refusal

    # Start

    def start_again(self) -> int:
        """Return the recorded pid. Raises the recorded error."""
        recorded = self.played.exchange
        if recorded.head:
            self.started(int(recorded.head[a.PROCESS_PID]))
            return self.pid
        end = recorded.end
        if end is not None and end.error is not None:
            at = self.call.arrive().wait()
            error = again(end.error, OSError)
            self.call.end("error", at, end.error)
            self._session.open_exchanges.discard(self)
            raise error
        if not self.observed:
            self.block("its start was not recorded")
        told = 0 if end is None else int(end.values.get(a.PROCESS_PID, 0))
        self.started(told or next(_pids))
        return self.pid

    # Pipes

    def read(self, stream: str, size: int, live: Callable[[int], bytes | None]) -> bytes | None:
        """See `Child.read`."""
        if size == 0:
            return b""
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
        """Index of the next part of these streams, and its stream; (None, "") if there is none."""
        with self._lock:
            found = [(due[0], name) for name in streams if (due := self._due.get(name))]
        return min(found) if found else (None, "")

    def took(self, index: int, at: Delivery | None = None) -> bytes:
        """Deliver a part of the recording to the program; its bytes."""
        name = stream_of(self.played.exchange.parts[index])
        with self._lock:
            self._due[name].remove(index)
        data = self.played.part(index)
        self.learned(name, data, at)
        self.offer()
        return data

    def end_stream(self, stream: str) -> None:
        """Note the end of a stream that an event loop reports to the program."""
        with self._lock:
            self._ended.add(stream)

    def write(self, data: Any, live: Callable[[], int | None]) -> int | None:
        """See `Child.write`."""
        whole = bytes(memoryview(data).cast("B"))
        self.answers()
        if not self._heard:
            self.call.sent(whole)
            return len(whole)
        room, (stop, how) = self._stdin.room(), self.next((BROKEN, UNREAD))
        if room <= 0 and whole and stop is not None:
            if how == UNREAD:
                return None
            self.took(stop, self.call.arrive(stop + 1).wait())
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        taken = whole
        if 0 < room < len(whole) and (stop is not None or not self._stdin.closed):
            taken = whole[:room]
        self._differs(self._stdin.take(self.call.sent(taken)))
        return len(taken)

    def takes_more(self) -> bool:
        """Return whether the child takes more stdin, or it is closed or broken."""
        if self.observed:
            return True
        broken, _ = self.next((BROKEN,))
        return self._stdin.room() > 0 or self._stdin.closed or broken is not None

    def closes(self, stream: str) -> None:
        """See `Child.closes`."""
        self.far.let_go(stream)
        if not self._closing(stream):
            return
        if stream != "stdin":
            with self._lock:
                left = [*self._due.pop(stream, ()), *self._due.pop(f"{stream}.none", ())]
            self.call.skip(index + 1 for index in left)
        elif self._refusal is None:
            self._closed_stdin()
            self._differs(self._stdin.end())

    def _differs(self, difference: str) -> None:
        if difference:
            self.block(f"its stdin differs {difference}")

    def offer(self) -> None:
        """See `Child.offer`."""
        if not self.asynchronous and self.far:
            self.far.offer(self.next(("stdout", "stderr", *STATUS))[1], self._ended)

    def _drain(self, stream: str) -> None:
        end = end_of(self, stream)
        if end is not None:
            end.drain()

    # Status and end

    @property
    def due(self) -> tuple[int, int] | None:
        """See `Child.due`."""
        end = self.played.exchange.end
        if end is None or self.call.ended is not None:
            return None
        at = end.delivery
        return (1 << 62, 0) if at is None else (at.batch, at.order)

    def poll(self) -> int | Expired | None:
        """Return the exit status, if the program learns of the end now; else None or `Expired`."""
        self.answers()
        index, _ = self.next(STATUS)
        if index is not None:
            self.took(index)
            return None
        end = self._complete()
        if self.observed and self.beside and end is None:
            return self._ends_beside(os.WNOHANG)
        due = None if end is None else end.delivery
        if self.observed and not self._session.driver.gate.is_due(due):
            return None
        return None if end is None else self.wait()

    def poll_quietly(self) -> int | None:
        """Return the exit status, if a finalizer learned it."""
        end = self._complete()
        return self.exits(None) if end is not None and end.delivery is None else None

    def wait(self, timeout: float | None = None) -> int | Expired:
        """Wait for the end; the exit status, or `Expired`. ``timeout``: in seconds."""
        self.answers()
        if self.observed and (timeout is not None or self._complete() is None):
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
            if name == EXPIRED and self._complete() is None:
                break
            self.took(index)
            self.call.skip([index + 1])
        permit = self.exit_permit()
        return self.exits(permit.wait() if permit is not None else None)

    def expires(self, index: int) -> Expired:
        """Return the timed-out wait in a part of the recording."""
        return Expired(json.loads(self.took(index, self.call.arrive(index + 1).wait())))

    def is_complete(self) -> bool:
        """Return whether a signal ended it, so that nothing of it is missing."""
        end = self.played.exchange.end
        return end is not None and int(end.values.get(a.PROCESS_EXIT_CODE, 0)) < 0

    def exit_permit(self) -> Permit | None:
        """Return the permit of its end; None if the end had no permit."""
        end = self._complete()
        if end is None:
            return self.call.never()
        return None if end.delivery is None else self.call.arrive(len(self.played.exchange.parts) + 1)

    def _complete(self) -> End | None:
        """Return the recorded end, if the program learned of it; else None."""
        end = self.played.exchange.end
        return end if end is not None and end.how == "complete" else None

    def _ends_beside(self, options: int) -> int | None:
        """Exit status of the process that runs in its place, if the tape has none."""
        assert unpatched.waitpid is not None
        self._session.driver.gate.is_due(None)
        with lanes.Outside():
            pid, status = unpatched.waitpid(self.beside, options)
        if not pid:
            return None
        self.beside = 0
        return os.waitstatus_to_exitcode(status)

    def _outlasts(self) -> bool:
        """Return whether it runs until the program ends it, and the program has not."""
        end = self._complete()
        if end is None:
            return True
        return not self.signalled and -int(end.values.get(a.PROCESS_EXIT_CODE, 0)) in ENDED_BY

    def exited(self, status: int, *, in_turn: bool = False) -> None:
        """No-op: `exits` delivers the recorded end."""

    def exits(self, at: Delivery | None) -> int:
        """Deliver its end with all its changes; the exit status."""
        recorded = self.played.exchange.end
        assert recorded is not None
        status = int(recorded.values[a.PROCESS_EXIT_CODE])
        if self.call.ended is None:
            self._differs(self._stdin.at_exit())
            files = files_of(self._session.driver)
            body = recorded.body
            if body is not None:
                if files is not None and files.workspace.elsewhere:
                    files.workspace.apply(decode_changes(self.played.read(body)))
                body = Content(body.digest, body.size)
            self.files.write_again(self._pieces)
            self._end("complete", at, {a.PROCESS_EXIT_CODE: status}, body)
        return status

    def _pieces(self, stream: str) -> Iterator[tuple[int, bytes]]:
        """What it wrote to a regular file: each piece with its offset in the file."""
        while (index := self.next((f"{stream}.file",))[0]) is not None:
            at = self.played.exchange.parts[index].attributes
            yield int(at.get(a.PLAYHEAD_PROCESS_OFFSET, 0)), self.took(index)

    def abandoned(self) -> None:
        """See `Child.abandoned`."""
        self._end("abandoned", None)
        self.far.release()


_pids: Final = itertools.count(1 << 22)
"""Pids for children whose pid is on no tape: no system uses such numbers."""
