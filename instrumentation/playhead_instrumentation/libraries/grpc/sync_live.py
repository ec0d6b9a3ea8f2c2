"""Record a call through a blocking channel that the server answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead_core.facts import Delivery
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_instrumentation.libraries.grpc.exchange import (
    Status,
    answered,
    ended,
    given_up,
    metadata_with_context,
)
from playhead_instrumentation.patching.lanes import Outside, Shadow

SEND_MESSAGE, RECEIVE_METADATA, RECEIVE_MESSAGE, RECEIVE_STATUS = 1, 4, 5, 6
"""Types of operations, as the core of gRPC numbers them."""

RECEIVES = (RECEIVE_METADATA, RECEIVE_MESSAGE, RECEIVE_STATUS)

log = Log(__name__)


class Message:
    """A message to be sent, whose content can be read."""

    def __init__(self, message: Any = b"", *_: Any, **__: Any) -> None:
        self.message = bytes(message or b"")


class InitialMetadata:
    """The operation that sends the metadata of a call, which can be read."""

    def __init__(self, metadata: Any = None, flags: int = 0, *_: Any, **__: Any) -> None:
        self.metadata = metadata
        self.flags = flags


def with_context(exchange: MessageExchange, batch: Any) -> tuple[Any, ...]:
    """Return a batch of operations of a live call, with the trace context in its metadata."""
    return tuple(
        type(op)(metadata_with_context(exchange, op.metadata), op.flags)
        if isinstance(op, InitialMetadata)
        else op
        for op in batch
    )


def tell(exchange: MessageExchange, batch: Any) -> None:
    """Record the messages that a batch of operations sends. Raises what a replay refuses."""
    for op in batch:
        if isinstance(op, Message):
            exchange.sent(op.message)


class Listener:
    """Record the events of a call before the library gets them."""

    def __init__(self, exchange: MessageExchange) -> None:
        self.exchange = exchange

    def callback(self, tag: Any) -> Any:
        """Return a callback that records an event after its permit and then passes it to ``tag``."""

        def heard(event: Any) -> Any:
            self.heard(event)
            return tag(event)

        return heard

    def heard(self, event: Any) -> None:
        """Record an event from the outside world."""
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
                answered(exchange, op.initial_metadata(), exchange.along(at, place))
            elif kind == RECEIVE_STATUS:
                status = Status(op.code(), op.details(), op.trailing_metadata(), op.error_string())
                ended(exchange, status, exchange.along(at, place))
            elif op.message() is None:
                continue
            else:
                exchange.received(op.message(), exchange.along(at, place))
            place += 1


def _nothing() -> None:
    """No-op callback."""


class LiveCall:
    """Call of the core that is recorded."""

    def __init__(self, call: Any, listener: Listener, *, segregated: bool) -> None:
        self._call = call
        self._listener = listener
        self._segregated = segregated
        self.on_batch: Callable[[], None] = _nothing
        """Called for each batch that begins, except the first ones."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def operate(self, batch: Any, tag: Any) -> Any:
        """Begin a batch of operations."""
        tell(self._listener.exchange, batch)
        self.on_batch()
        with Shadow():
            return self._call.operate(batch, tag if self._segregated else self._listener.callback(tag))

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
