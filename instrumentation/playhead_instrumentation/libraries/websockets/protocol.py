"""The state machine of `websockets`, recorded. Both kinds of client use this."""

from __future__ import annotations

import functools
import sys
from typing import Any

from playhead_core.errors import ExchangeUnmatched, PlayheadError
from playhead_core.facts import Delivery, ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_instrumentation.libraries.websockets.exchange import (
    CLOSED,
    OPCODES,
    Handshake,
    answered,
    closing,
    described,
    error_body,
)
from playhead_instrumentation.patching.lanes import UNRECORDED, current

SWITCHING = 101
"""Status of a successful handshake."""

LISTENS = "_playhead_listens"
"""Attribute of a connection that holds its `Listener`."""

log = Log(__name__)


class Listener:
    """Puts what passes through a connection on the tape, live or replayed. Never raises, except what a
    replay refuses."""

    def __init__(self, exchange: MessageExchange) -> None:
        self.exchange = exchange
        self.at: Delivery | None = None
        """Delivery of what is arriving now."""
        self.place = 0
        """How many items have arrived in that delivery."""
        self.answered = False
        """Whether the handshake was answered."""
        self._of_library: set[bytes] = set()
        """Payloads of pings that the library sends for itself."""

    def came(self, at: Delivery | None) -> None:
        """The state machine is about to be given something."""
        self.at, self.place = at, 0

    def next_at(self) -> Delivery | None:
        """Return the delivery of the next item."""
        at = self.exchange.along(self.at, self.place)
        self.place += 1
        return at

    def addresses(self) -> tuple[Any, Any]:
        """Local and remote address of the connection."""
        return None, None

    def ended(self, protocol: Any, error: BaseException | None, at: Delivery | None) -> None:
        """The connection is gone."""
        exchange = self.exchange
        if exchange.over:
            return
        if error is not None:
            exchange.failed(error, at)
        elif protocol.close_rcvd is not None or (self.answered and protocol.handshake_exc is not None):
            exchange.finished(at)
        else:
            exchange.broken(ErrorRecord(*CLOSED, "no close frame received"), at)

    def tap(self, protocol: Any) -> None:
        """Record what goes out through ``protocol``."""
        for name in ("text", "binary", "continuation"):
            wrap(protocol, f"send_{name}", self._sends(name))
        for name in ("ping", "pong"):
            wrap(protocol, f"send_{name}", self._pinging(name))
        wrap(protocol, "send_close", self._send_close)

    def _sends(self, opcode: str) -> Any:
        def send(original: Any, data: Any, fin: bool = True) -> None:
            if current() is not UNRECORDED:
                self._tell(bytes(data), described(opcode, final=fin))
            original(data, fin)

        return send

    def _pinging(self, opcode: str) -> Any:
        def send(original: Any, data: Any) -> None:
            if current() is UNRECORDED:
                if opcode == "ping":
                    self._of_library.add(bytes(data))
            else:
                self._tell(self._payload(bytes(data), opcode), described(opcode))
            original(data)

        return send

    def _payload(self, data: bytes, opcode: str) -> bytes:
        """Return the payload of a ping or pong as it goes on the tape."""
        return data

    def _send_close(self, original: Any, code: Any = None, reason: str = "") -> None:
        if current() is not UNRECORDED:
            self._tell(closing(code, reason), described("close"))
        original(code, reason)

    def _tell(self, data: bytes, attributes: dict[str, Any]) -> None:
        try:
            self.exchange.call.check()
        except PlayheadError as refused:
            raise _passing(refused) from None
        try:
            self.exchange.sent(data, attributes)
        except ExchangeUnmatched as error:
            raise _passing(error) from None


class LiveListener(Listener):
    """Puts what the world sends on the tape before the program gets it."""

    def __init__(self, exchange: MessageExchange) -> None:
        super().__init__(exchange)
        self.feeding = False
        """Whether the state machine is being given bytes now."""
        self.raw = b""
        """Bytes that arrived before the handshake was answered."""
        self._known = 0
        """How many of the events that the state machine holds are on the tape."""

    def tap(self, protocol: Any) -> None:
        """Record what goes out and what comes in through ``protocol``."""
        super().tap(protocol)
        wrap(protocol, "fail", functools.partial(self._fail, protocol))
        wrap(protocol, "events_received", functools.partial(self._events, protocol))

    def _hear(self, events: list[Any]) -> None:
        """Record those ``events`` that are new; the state machine made them from the bytes."""
        for event in events[self._known :]:
            self._heard(event)
        self._known = len(events)

    def _heard(self, event: Any) -> None:
        try:
            if hasattr(event, "status_code"):
                self._head(event, self.addresses())
            else:
                opcode = OPCODES.get(int(event.opcode), "binary")
                if opcode != "pong" or bytes(event.data) not in self._of_library:
                    self.exchange.received(
                        bytes(event.data), self.next_at(), described(opcode, final=event.fin)
                    )
        except Exception:
            log.debug("playhead could not record a message", exc_info=True)

    def _head(self, response: Any, addresses: tuple[Any, Any]) -> None:
        self.answered = True
        status, reason = response.status_code, response.reason_phrase
        handshake = Handshake(addresses, status, reason, response.headers.raw_items())
        answered(self.exchange, handshake, self.next_at())
        if response.body:
            self.exchange.received(bytes(response.body), self.next_at(), described("body"))
        if response.status_code != SWITCHING:
            self.exchange.finished(self.next_at())

    def _noise(self, data: bytes) -> None:
        """What arrived instead of an answer is not HTTP."""
        self.answered = True
        answered(self.exchange, Handshake(self.addresses()), self.next_at())
        self.exchange.received(data, self.next_at(), described("raw"))

    def _events(self, protocol: Any, original: Any) -> Any:
        events = original()
        self._hear(events)
        self._known = 0
        if self.raw and not self.answered and protocol.handshake_exc is not None:
            self._noise(self.raw)
            self.raw = b""
        return events

    def _fail(self, protocol: Any, original: Any, code: Any, reason: str = "") -> None:
        try:
            if not self.exchange.over:
                problem = sys.exception()
                if not self.feeding:
                    if current() is UNRECORDED:  # a ping of the library was not answered
                        self.came(self.exchange.call.arrive().wait())
                        self.exchange.received(closing(code, reason), self.next_at(), described("fail"))
                elif problem is not None and not isinstance(problem, EOFError):
                    self._hear(protocol.events)
                    body = error_body(self.exchange.recorded(problem))
                    self.exchange.received(body, self.next_at(), described("broken"))
        except Exception:
            log.debug("playhead could not record a failure", exc_info=True)
        original(code, reason)


def wrap(protocol: Any, name: str, told: Any) -> None:
    """Replace a method of one protocol by ``told(original, *arguments)``."""
    original = getattr(protocol, name)
    setattr(protocol, name, functools.partial(told, original))


def _passing(error: Any) -> Exception:
    """Return ``error`` in a class that the library passes on to the program unchanged."""
    known: Any = sys.modules["websockets.exceptions"]
    lets_through: Any = getattr(known, "ConcurrencyError", RuntimeError)
    own: Any = error.__class__
    kind: Any = type(own.__name__, (own, lets_through), {"__module__": own.__module__})
    return kind(error.what, cause=error.cause, hint=error.hint)


def record_of_opening(exchange: MessageExchange, error: Exception) -> ErrorRecord:
    """Return the error of a connection that failed to open, with a proxy's response if there was one."""
    record = exchange.recorded(error)
    response: Any = getattr(error, "response", None)
    args = record.args if response is None else [response.status_code, response.reason_phrase]
    return ErrorRecord(record.module, record.qualname, record.message, args, "request")
