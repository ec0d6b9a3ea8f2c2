"""gRPC through blocking channels: the edge of a call, below all Python code of the library.

The class of channels that the library wraps is patched. A call through a channel consists of batches of
operations, and each batch completes with an event. A recording listens to the events. A replay makes
them from the tape; the library's own futures, iterators, callbacks and errors run above them.
"""

from __future__ import annotations

import functools
import logging
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead_instrumentation.boundaries.grpc.exchange import (
    Status,
    answered,
    begin,
    ended,
    given_up,
    play_again,
    refused,
    too_late,
)
from playhead_instrumentation.boundaries.message_exchange import MessageExchange
from playhead_instrumentation.boundaries.recording import recording_requests_of_program
from playhead_instrumentation.driver.gate import Turn
from playhead_instrumentation.driver.verdict import Played
from playhead_instrumentation.runtime.lanes import Outside, Shadow
from playhead_instrumentation.runtime.patching import PATCHES, required
from playhead_instrumentation.session.session import Session, current
from playhead_semconv.errors import ExchangeExhausted, PlayheadError
from playhead_semconv.facts import Delivery

SEND_MESSAGE, RECEIVE_METADATA, RECEIVE_MESSAGE, RECEIVE_STATUS = 1, 4, 5, 6
"""Types of operations, as the core of gRPC numbers them."""

RECEIVES = (RECEIVE_METADATA, RECEIVE_MESSAGE, RECEIVE_STATUS)
READY = 2
"""Connectivity state of a channel at a replay."""

log = logging.getLogger(__name__)


def patch(module: ModuleType) -> None:
    """Make the library use our subclasses of channels and messages."""
    core: Any = required(module, "cygrpc")
    channel: Any = required(core, "Channel")
    if hasattr(channel, "__playhead__"):
        return
    for name in ("segregated_call", "integrated_call", "next_call_event", "check_connectivity_state"):
        required(channel, name)
    message: Any = required(core, "SendMessageOperation")
    ours: Any = type("Channel", (_Channel, channel), {"__playhead__": True})
    PATCHES.put_all(
        core,
        {"SendMessageOperation": type("SendMessageOperation", (_Message, message), {}), "Channel": ours},
    )


class _Message:
    """A message to be sent, whose content can be read."""

    def __init__(self, message: Any = b"", *_: Any, **__: Any) -> None:
        self.message = bytes(message or b"")


class _Channel:
    """A channel of the core. Some of its calls are listened to or played.

    The core runs in the unrecorded lane, because threads that wait for the world hold its locks, too.
    """

    def __init__(self, target: bytes, *_: Any, **__: Any) -> None:
        self._playhead_target = bytes(target).decode("utf-8", "replace")
        self._playhead_events: queue.Queue[Any] | None = None
        """Where a tape answers: events for the thread of the channel, played or real."""
        self._playhead_due: queue.Queue[None] | None = None
        """An entry for each event that the world will deliver."""
        session = current()
        if session is not None and session.driver.closed:
            # A wait that polls with timeouts never looks blocked, so wait without a timeout.
            common: Any = sys.modules["grpc._common"]
            PATCHES.put(common, "MAXIMUM_WAIT_TIMEOUT", None)
            self._playhead_events = queue.Queue()

    def segregated_call(self, *args: Any, **kwargs: Any) -> Any:
        """Make a call whose events are taken by the calling thread."""
        original: Any = super()
        return PATCHES.call(self._segregated, original.segregated_call, *args, **kwargs)

    def _segregated(
        self,
        segregated_call: Any,
        flags: int,
        method: bytes,
        host: Any,
        deadline: Any,
        metadata: Any,
        credentials: Any,
        batches: Any,
        *more: Any,
    ) -> Any:
        def make(batches: Any) -> Any:
            with Shadow():
                return segregated_call(
                    flags, method, host, deadline, metadata, credentials, batches, *more
                )

        made = self._begun(method, metadata, batches)
        if made is None:
            return make(batches)
        session, exchange = made
        if exchange.played is None and exchange.refusal is None:
            return _HeardCall(make(batches), _Listener(exchange, session), segregated=True)
        return _PlayedCall(exchange, batches)

    def integrated_call(self, *args: Any, **kwargs: Any) -> Any:
        """Make a call whose events are taken by a thread of the channel."""
        original: Any = super()
        return PATCHES.call(self._integrated, original.integrated_call, *args, **kwargs)

    def _integrated(
        self,
        integrated_call: Any,
        flags: int,
        method: bytes,
        host: Any,
        deadline: Any,
        metadata: Any,
        credentials: Any,
        batches: Any,
        *more: Any,
    ) -> Any:
        def make(batches: Any) -> Any:
            with Shadow():
                return integrated_call(
                    flags, method, host, deadline, metadata, credentials, batches, *more
                )

        made = self._begun(method, metadata, batches)
        if made is None:
            return make(batches)
        session, exchange = made
        if exchange.played is None and exchange.refusal is None:
            listener = _Listener(exchange, session)
            heard = tuple((batch, listener.told(tag)) for batch, tag in batches)
            call = _HeardCall(make(heard), listener, segregated=False)
            if self._playhead_events is not None:
                self._bring(len(heard))
                call.on_batch = functools.partial(self._bring, 1)
            return call
        if self._playhead_events is None:
            self._playhead_events = queue.Queue()
        call = _PlayedCall(exchange, batches)
        call.bring_to(self._playhead_events)
        return call

    def next_call_event(self) -> Any:
        """Return the next event of any integrated call."""
        if self._playhead_events is not None:
            return self._playhead_events.get()
        original: Any = super()
        with Outside():
            return original.next_call_event()

    def check_connectivity_state(self, try_to_connect: bool) -> Any:
        """Return the connectivity state; at a replay always `READY`."""
        original: Any = super()
        session = current()
        if session is not None and session.driver.closed:
            return READY
        return original.check_connectivity_state(try_to_connect)

    def _bring(self, count: int) -> None:
        """Put ``count`` real events into the queue that the thread of the channel reads."""
        events: Any = self._playhead_events
        original: Any = super()
        due = self._playhead_due or queue.Queue[None]()

        def bring() -> None:
            while True:
                due.get()
                events.put(original.next_call_event())

        if self._playhead_due is None:
            self._playhead_due = due
            with Shadow():
                threading.Thread(target=bring, daemon=True).start()
        for _ in range(count):
            due.put(None)

    def _begun(self, method: bytes, metadata: Any, batches: Any) -> Any:
        session = recording_requests_of_program()
        if session is None:
            return None
        sends = [op.message for batch, _ in batches for op in batch if isinstance(op, _Message)]
        request = sends[0] if sends else None
        exchange = begin(session, self._playhead_target, method.decode(), metadata, request)
        return None if exchange is None else (session, exchange)


class _Listener:
    """Puts what the events of a call bring on the tape, before the library gets them."""

    def __init__(self, exchange: MessageExchange, session: Session) -> None:
        self.exchange = exchange
        self._session = session

    def told(self, tag: Any) -> Any:
        """Return a callback that records an event after its turn and then passes it to ``tag``."""

        def tell(event: Any) -> Any:
            self.heard(event)
            return tag(event)

        return tell

    def heard(self, event: Any) -> None:
        """Record an event from the world outside."""
        exchange = self.exchange
        at = exchange.call.arrive().wait()
        try:
            self._report(event, at)
        except Exception:
            log.debug("playhead could not record an event", exc_info=True)

    def _report(self, event: Any, at: Delivery | None) -> None:
        exchange, place = self.exchange, 0
        by_type = {int(op.type()): op for op in event.batch_operations}
        for kind in RECEIVES:
            op = by_type.get(kind)
            if op is None:
                continue
            if kind == RECEIVE_METADATA:
                answered(exchange, self._session, op.initial_metadata(), exchange.along(at, place))
            elif kind == RECEIVE_STATUS:
                status = Status(op.code(), op.details(), op.trailing_metadata(), op.error_string())
                ended(exchange, self._session, status, exchange.along(at, place))
            elif op.message() is None:
                continue
            else:
                exchange.received(op.message(), exchange.along(at, place))
            place += 1


def _nothing() -> None:
    """No-op callback."""


class _HeardCall:
    """A call of the core that is listened to."""

    def __init__(self, call: Any, listener: _Listener, *, segregated: bool) -> None:
        self._call = call
        self._listener = listener
        self._segregated = segregated
        self.on_batch: Callable[[], None] = _nothing
        """Called for each batch that begins, except the first ones."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def operate(self, batch: Any, tag: Any) -> Any:
        """Begin a batch of operations."""
        _tell(self._listener.exchange, batch)
        self.on_batch()
        with Shadow():
            return self._call.operate(batch, tag if self._segregated else self._listener.told(tag))

    def cancel(self, code: Any, details: Any) -> None:
        """The program cancels the call."""
        given_up(self._listener.exchange, str(details))
        with Shadow():
            self._call.cancel(code, details)

    def next_event(self) -> Any:
        """Return the next event of a call that a thread of its own waits for."""
        with Outside():
            event = self._call.next_event()
        self._listener.heard(event)
        return event


def _tell(exchange: MessageExchange, batch: Any) -> None:
    for op in batch:
        if isinstance(op, _Message):
            exchange.sent(op.message)


class _Done:
    """A completed operation, as part of an event."""

    def __init__(self, kind: int, value: Any = None) -> None:
        self._kind = kind
        self._value = value

    def type(self) -> int:
        return self._kind

    def initial_metadata(self) -> Any:
        return self._value

    def message(self) -> Any:
        return self._value

    def code(self) -> int:
        return self._value.code

    def details(self) -> str:
        return self._value.details

    def trailing_metadata(self) -> Any:
        return self._value.trailers

    def error_string(self) -> str:
        return self._value.debug


class _Event:
    """The completion event of a batch."""

    completion_type = 0
    success = True

    def __init__(self, tag: Any, operations: list[_Done]) -> None:
        self.tag = tag
        self.batch_operations = operations


class _PlayedCall:
    """A call that a recording answers or that is refused."""

    def __init__(self, exchange: MessageExchange, batches: Any) -> None:
        self._exchange = exchange
        self._played: Played | None = exchange.played
        self._changed = threading.Condition()
        self._batches: list[tuple[Any, list[int]]] = []
        self._late: list[Any] = []
        """Tags of messages that are sent after the recorded call had failed."""
        self._turn: Turn | None = None
        self._index = 0
        self._head: Any = None
        self._messages: deque[bytes] = deque()
        self._status: Status | None = None
        if exchange.refusal is not None:
            self._refuse(exchange.refusal)
        for batch, tag in batches:
            self._add(batch, tag)

    def operate(self, batch: Any, tag: Any) -> bool:
        """Begin a batch of operations."""
        late = any(isinstance(op, _Message) for op in batch) and too_late(self._exchange)
        if not late:
            try:
                _tell(self._exchange, batch)
            except PlayheadError as error:
                self._refuse(error)
        self._add(batch, tag, late=late)
        return True

    def cancel(self, code: Any, details: Any) -> None:
        """The program cancels the call."""
        with self._changed:
            if self._status is not None:
                return
            text = details.decode() if isinstance(details, bytes) else str(details)
            self._status = Status(int(code), text, (), f"CANCELLED:{text}")
            self._changed.notify_all()
            turn = self._turn
        given_up(self._exchange, text)
        if turn is not None:
            turn.give_up()

    def next_event(self) -> Any:
        """Return the next completion of a batch when its turn comes; None when the session is over."""
        exchange = self._exchange
        while True:
            with self._changed:
                done = self._completed()
                if done is not None:
                    return done
                if self._status is not None or not self._wanted():
                    self._changed.wait()
                    continue
                self._turn = turn = exchange.turn()
            try:
                at = turn.wait()
            except ExchangeExhausted as error:
                exchange.exhausted(error)
                self._refuse(error)
                continue
            self._turn = None
            if not exchange.due(turn) or at is None:
                if exchange.over and self._status is None:
                    return None
                continue
            self._arrive(at)

    def bring_to(self, events: queue.Queue[Any]) -> None:
        """Start a thread that puts the events of this call into ``events``."""

        def bring() -> None:
            while (event := self.next_event()) is not None:
                events.put(event)
                if any(op.type() == RECEIVE_STATUS for op in event.batch_operations):
                    while (rest := self._next_done()) is not None:
                        events.put(rest)
                    return

        threading.Thread(target=bring, daemon=True).start()

    def _next_done(self) -> Any:
        with self._changed:
            return self._completed()

    def _add(self, batch: Any, tag: Any, *, late: bool = False) -> None:
        with self._changed:
            self._batches.append((tag, [int(op.type()) for op in batch]))
            if late:
                self._late.append(tag)
            self._changed.notify_all()
            turn = self._turn
        if turn is not None:
            turn.give_up()

    def _refuse(self, error: PlayheadError) -> None:
        self._exchange.failed(error)
        with self._changed:
            self._status = refused(error)
            self._changed.notify_all()

    def _wanted(self) -> bool:
        """Whether the library waits for the next item."""
        played = self._played
        if played is None:
            return False
        recorded = played.exchange
        place = self._index - bool(recorded.head)
        if place < 0 or place >= len(recorded.parts):
            return True
        waiting = sum(kinds.count(RECEIVE_MESSAGE) for _, kinds in self._batches)
        return waiting > len(self._messages)

    def _arrive(self, at: Delivery) -> None:
        played = self._played
        if played is None:
            return
        came = play_again(self._exchange, played, self._index, at)
        self._index += 1
        with self._changed:
            if isinstance(came, bytes):
                self._messages.append(came)
            elif isinstance(came, Status):
                self._status = came
            elif came is None:
                self._status = refused(ExchangeExhausted("the recorded call has no status"))
            else:
                self._head = came
            self._changed.notify_all()

    def _completed(self) -> _Event | None:
        """Return the first batch whose operations are all complete; None where there is none."""
        over = self._status is not None
        for place, (tag, kinds) in enumerate(self._batches):
            if SEND_MESSAGE in kinds and RECEIVE_STATUS not in kinds and tag in self._late and not over:
                continue
            if RECEIVE_STATUS in kinds and not over:
                continue
            if RECEIVE_METADATA in kinds and self._head is None and not over:
                continue
            if RECEIVE_MESSAGE in kinds and not self._messages and not over:
                continue
            if RECEIVE_STATUS in kinds and self._messages and RECEIVE_MESSAGE not in kinds:
                continue
            del self._batches[place]
            return _Event(tag, [self._done(kind) for kind in kinds])
        return None

    def _done(self, kind: int) -> _Done:
        if kind == RECEIVE_METADATA:
            return _Done(kind, self._head if self._head is not None else ())
        if kind == RECEIVE_MESSAGE:
            return _Done(kind, self._messages.popleft() if self._messages else None)
        return _Done(kind, self._status if kind == RECEIVE_STATUS else None)
