"""A call through a blocking channel whose events are made from the tape."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from playhead_core.errors import ExchangeExhausted, PlayheadError
from playhead_core.facts import Delivery
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_instrumentation.libraries.grpc.exchange import (
    Status,
    given_up,
    play_again,
    refused,
    too_late,
)
from playhead_instrumentation.libraries.grpc.sync_live import (
    RECEIVE_MESSAGE,
    RECEIVE_METADATA,
    RECEIVE_STATUS,
    SEND_MESSAGE,
    Message,
    tell,
)
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.recorder.played_exchange import PlayedExchange


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


class RecordedCall:
    """A call that a recording answers or that is refused."""

    def __init__(self, played: PlayedExchange | None, exchange: MessageExchange, batches: Any) -> None:
        """``played`` None: nothing answers."""
        self._exchange = exchange
        self._played = played
        self._changed = threading.Condition()
        self._batches: list[tuple[Any, list[int]]] = []
        self._late: list[Any] = []
        """Tags of messages that are sent after the recorded call had failed."""
        self._permit: Permit | None = None
        self._index = 0
        self._head: Any = None
        self._messages: deque[bytes] = deque()
        self._status: Status | None = None
        try:
            exchange.call.check()
        except PlayheadError as error:
            self._refuse(error)
        for batch, tag in batches:
            self._add(batch, tag)

    def operate(self, batch: Any, tag: Any) -> bool:
        """Begin a batch of operations."""
        late = any(isinstance(op, Message) for op in batch) and too_late(self._exchange, self._played)
        if not late:
            try:
                tell(self._exchange, batch)
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
            permit = self._permit
        given_up(self._exchange, text)
        if permit is not None:
            permit.give_up()

    def next_event(self) -> Any:
        """Return the next completion of a batch when its permit comes; None when the session is over."""
        exchange = self._exchange
        while True:
            with self._changed:
                done = self._completed()
                if done is not None:
                    return done
                if self._status is not None or not self._wanted():
                    self._changed.wait()
                    continue
                self._permit = permit = exchange.permit()
            try:
                at = permit.wait()
            except ExchangeExhausted as error:
                exchange.exhausted(error)
                self._refuse(error)
                continue
            self._permit = None
            if not exchange.due(permit) or at is None:
                if exchange.over and self._status is None:
                    return None
                continue
            self._arrive(at)

    def bring_to(self, take: Callable[[Any], object]) -> None:
        """Start a thread that gives the events of this call to ``take``."""

        def bring() -> None:
            while (event := self.next_event()) is not None:
                take(event)
                if any(op.type() == RECEIVE_STATUS for op in event.batch_operations):
                    while (rest := self._next_done()) is not None:
                        take(rest)
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
            permit = self._permit
        if permit is not None:
            permit.give_up()

    def _refuse(self, error: PlayheadError) -> None:
        self._exchange.failed(error)
        with self._changed:
            self._status = refused(error)
            self._changed.notify_all()

    def _wanted(self) -> bool:
        """Return whether the library waits for the next item."""
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
        """Return the first batch whose operations are all complete; None if there is none."""
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
