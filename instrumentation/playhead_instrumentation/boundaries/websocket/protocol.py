"""The state machine of `websockets`, observed or fed from a recording. Both kinds of client use this."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from playhead_instrumentation.boundaries.message_exchange import MessageExchange
from playhead_instrumentation.boundaries.websocket.exchange import (
    CLOSED,
    OPCODES,
    answered,
    close_of,
    closing,
    described,
    error_body,
    error_in,
    frame,
    head_of,
    key_of,
)
from playhead_instrumentation.driver.verdict import Played
from playhead_instrumentation.runtime.lanes import UNRECORDED, current
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a
from playhead_semconv.errors import ExchangeExhausted, ExchangeUnmatched
from playhead_semconv.facts import Delivery, ErrorRecord

SWITCHING = 101
"""Status of a successful handshake."""

RANDOM_BYTES = 4
"""Length of the payload that the library puts into a ping."""

LISTENS = "_playhead_listens"
"""Attribute of a connection that holds its `Listener`."""

log = logging.getLogger(__name__)


class Item(NamedTuple):
    """Something that arrived, to be delivered again."""

    opcode: str
    """Opcode of a part; ``head`` or ``lost`` for what is not a part."""
    data: bytes
    wire: bytes
    """The bytes as the connection carries them; empty where the item has no bytes."""
    final: bool = True


class Listener:
    """Puts what arrives on a connection on the tape before the program gets it. Never raises."""

    def __init__(self, exchange: MessageExchange, session: Session) -> None:
        self.exchange = exchange
        self.session = session
        self.at: Delivery | None = None
        """Delivery of what is arriving now."""
        self.place = 0
        """How many items have arrived in that delivery."""
        self.feeding = False
        """Whether the state machine is being given bytes now."""
        self.answered = False
        self.raw = b""
        """Bytes that arrived before the handshake was answered."""
        self._known = 0
        """How many of the events that the state machine holds are on the tape."""
        self.pings: dict[bytes, bytes] = {}
        """Replay: payloads of pings, recorded → now."""
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
        answered(
            self.exchange,
            self.session,
            self.next_at(),
            status=response.status_code,
            reason=response.reason_phrase,
            headers=response.headers.raw_items(),
            addresses=addresses,
        )
        if response.body:
            self.exchange.received(bytes(response.body), self.next_at(), described("body"))
        if response.status_code != SWITCHING:
            self.exchange.finished(self.next_at())

    def _noise(self, data: bytes) -> None:
        """What arrived instead of an answer is not HTTP."""
        self.answered = True
        answered(self.exchange, self.session, self.next_at(), addresses=self.addresses())
        self.exchange.received(data, self.next_at(), described("raw"))

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

    def _as_recorded(self, data: bytes, opcode: str) -> bytes:
        """Return the random payload of a ping as it was when it was recorded."""
        played, number = self.exchange.played, self.exchange.sent_count
        if opcode != "ping" or len(data) != RANDOM_BYTES or played is None:
            return data
        sent = played.exchange.sent
        if number < len(sent) and sent[number].attributes.get(a.PLAYHEAD_WEBSOCKET_OPCODE) == "ping":
            recorded = played.read(sent[number].data)
            if len(recorded) == RANDOM_BYTES:
                self.pings[recorded] = data
                return recorded
        return data

    def tap(self, protocol: Any) -> None:
        """Record what goes out through ``protocol``."""
        for name in ("text", "binary", "continuation"):
            _wrap(protocol, f"send_{name}", self._sends(name))
        for name in ("ping", "pong"):
            _wrap(protocol, f"send_{name}", self._pinging(name))
        _wrap(protocol, "send_close", self._send_close)
        _wrap(protocol, "fail", functools.partial(self._fail, protocol))
        if self.exchange.played is None:
            _wrap(protocol, "events_received", functools.partial(self._events, protocol))

    def _events(self, protocol: Any, original: Any) -> Any:
        events = original()
        self._hear(events)
        self._known = 0
        if self.raw and not self.answered and protocol.handshake_exc is not None:
            self._noise(self.raw)
            self.raw = b""
        return events

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
                self._tell(self._as_recorded(bytes(data), opcode), described(opcode))
            original(data)

        return send

    def _send_close(self, original: Any, code: Any = None, reason: str = "") -> None:
        if current() is not UNRECORDED:
            self._tell(closing(code, reason), described("close"))
        original(code, reason)

    def _fail(self, protocol: Any, original: Any, code: Any, reason: str = "") -> None:
        try:
            if self.exchange.played is None and not self.exchange.over:
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

    def _tell(self, data: bytes, attributes: dict[str, Any]) -> None:
        refused = self.exchange.refusal
        if refused is not None:
            raise _passing(refused)
        try:
            self.exchange.sent(data, attributes)
        except ExchangeUnmatched as error:
            raise _passing(error) from None


def _wrap(protocol: Any, name: str, told: Any) -> None:
    original = getattr(protocol, name)
    setattr(protocol, name, functools.partial(told, original))


def _passing(error: Any) -> Exception:
    """Return ``error`` in a class that the library passes on to the program unchanged."""
    known: Any = sys.modules["websockets.exceptions"]
    lets_through: Any = getattr(known, "ConcurrencyError", RuntimeError)
    own: Any = error.__class__
    kind: Any = type(own.__name__, (own, lets_through), {"__module__": own.__module__})
    return kind(error.what, cause=error.cause, hint=error.hint)


def items(played: Played) -> Iterator[Item]:
    """Yield what arrived on a recorded connection, in order: the head, the parts, the end."""
    exchange = played.exchange
    if exchange.head:
        yield Item("head", b"", head_of(played))
    for index, part in enumerate(exchange.parts):
        opcode = str(part.attributes.get(a.PLAYHEAD_WEBSOCKET_OPCODE, "binary"))
        data, final = played.part(index), part.attributes.get(a.PLAYHEAD_WEBSOCKET_FINAL) is not False
        wire = data if opcode == "raw" else b""
        if opcode in OPCODES.values():
            wire = frame(opcode, data, final=final)
        yield Item(opcode, data, wire, final)
    yield Item("lost", b"", b"")


def report(listener: Listener, played: Played, item: Item, at: Delivery | None) -> None:
    """Put on the tape of the replay what is about to be delivered."""
    exchange = listener.exchange
    if item.opcode == "head":
        listener.answered = True
        exchange.answered(dict(played.exchange.head), at)
        status = played.exchange.head.get(a.HTTP_RESPONSE_STATUS_CODE)
        if status is not None:
            exchange.describe({a.HTTP_RESPONSE_STATUS_CODE: status})
    elif item.opcode == "lost":
        end = played.exchange.end
        if end is not None and end.error is not None:
            exchange.broken(end.error, at)
        else:
            exchange.finished(at)
    else:
        exchange.received(item.data, at, described(item.opcode, final=item.final))


def wire_of(listener: Listener, item: Item) -> bytes:
    """Return the bytes of an item; a pong gets the payload of the ping that was sent now."""
    if item.opcode == "pong" and item.data in listener.pings:
        return frame("pong", listener.pings[item.data])
    return item.wire


def fail_again(protocol: Any, item: Item) -> None:
    """Repeat an item that has no bytes: the connection was failed, or the bytes were malformed."""
    if item.opcode == "fail":
        protocol.fail(*close_of(item.data))
    elif item.opcode == "broken":
        protocol.parser.throw(error_in(item.data))


def prepare(protocol: Any, played: Played) -> None:
    """Make the handshake send the recorded key, so that the recorded answer fits."""
    key = key_of(played)
    if key:
        protocol.key = key


def cut(exchange: MessageExchange, error: ExchangeExhausted) -> ExchangeExhausted:
    """Return the error for a connection that waits for something that the tape does not hold."""
    missing = exchange.call.missing()
    if missing > 0:
        error = ExchangeExhausted(
            f"nothing comes before message {exchange.sent_count + 1} is sent",
            cause=f"on the tape the program had sent {exchange.sent_count + missing} by then",
        )
    exchange.exhausted(error)
    return error


def record_of_opening(exchange: MessageExchange, error: Exception) -> ErrorRecord:
    """Return the error of a connection that failed to open, with a proxy's response if there was one."""
    record = exchange.recorded(error)
    response: Any = getattr(error, "response", None)
    args = record.args if response is None else [response.status_code, response.reason_phrase]
    return ErrorRecord(record.module, record.qualname, record.message, args, "request")


def proxy_error(played: Played) -> Exception | None:
    """Return the recorded refusal of a proxy, to be raised again; None where there is none."""
    end = played.exchange.end
    error = None if end is None else end.error
    if error is None or error.qualname != "InvalidProxyStatus" or len(error.args) != 2:
        return None
    http: Any = sys.modules["websockets.http11"]
    headers = sys.modules["websockets.datastructures"].Headers()
    return sys.modules["websockets.exceptions"].InvalidProxyStatus(http.Response(*error.args, headers))
