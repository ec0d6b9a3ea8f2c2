"""A recorded connection: its bytes are built from the tape again and given to the library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from playhead_core.errors import ExchangeExhausted
from playhead_core.facts import Delivery
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_instrumentation.libraries.websockets.exchange import (
    CLOSED,
    OPCODES,
    addresses_of,
    body_of,
    close_of,
    described,
    error_in,
    error_of,
    frame,
    head_of,
)
from playhead_instrumentation.libraries.websockets.protocol import Listener
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_semconv import attributes as a

RANDOM_BYTES = 4
"""Length of the payload that the library puts into a ping."""


class Item(NamedTuple):
    """Something that arrived, to be delivered again."""

    opcode: str
    """Opcode of a part; ``head`` or ``lost`` for what is not a part."""
    data: bytes
    wire: bytes
    """The bytes as the connection carries them; empty if the item has no bytes."""
    final: bool = True


class RecordedListener(Listener):
    """Puts on the tape of the replay what the recording delivers."""

    def __init__(self, exchange: MessageExchange, played: PlayedExchange) -> None:
        super().__init__(exchange)
        self.played = played
        self._pings: dict[bytes, bytes] = {}
        """Payloads of pings, recorded → now."""

    def addresses(self) -> tuple[Any, Any]:
        """Local and remote address of the recorded connection."""
        return addresses_of(self.played)

    def items(self) -> Iterator[Item]:
        """Yield what arrived on the connection, in order: the head, the parts, the end."""
        exchange = self.played.exchange
        if exchange.head:
            yield Item("head", b"", head_of(self.played))
        for index, part in enumerate(exchange.parts):
            opcode = str(part.attributes.get(a.PLAYHEAD_WEBSOCKET_OPCODE, "binary"))
            final = part.attributes.get(a.PLAYHEAD_WEBSOCKET_FINAL) is not False
            data = self.played.part(index)
            wire = data if opcode == "raw" else b""
            if opcode in OPCODES.values():
                wire = frame(opcode, data, final=final)
            elif opcode == "body":
                wire = body_of(self.played, data)
            yield Item(opcode, data, wire, final)
        yield Item("lost", b"", b"")

    def report(self, item: Item, at: Delivery | None) -> None:
        """Put on the tape of the replay what is about to be delivered."""
        exchange, recorded = self.exchange, self.played.exchange
        if item.opcode == "head":
            self.answered = True
            exchange.answered(dict(recorded.head), at)
            status = recorded.head.get(a.HTTP_RESPONSE_STATUS_CODE)
            if status is not None:
                exchange.describe({a.HTTP_RESPONSE_STATUS_CODE: status})
        elif item.opcode == "lost":
            if recorded.end is not None and recorded.end.error is not None:
                exchange.broken(recorded.end.error, at)
            else:
                exchange.finished(at)
        else:
            exchange.received(item.data, at, described(item.opcode, final=item.final))

    def wire_of(self, item: Item) -> bytes:
        """Return the bytes of an item; a pong gets the payload of the ping that was sent now."""
        if item.opcode == "pong" and item.data in self._pings:
            return frame("pong", self._pings[item.data])
        return item.wire

    def error(self) -> BaseException | None:
        """Return the error with which the connection ended, to be raised again; None: there was none."""
        end = self.played.exchange.end
        if end is None or end.error is None or (end.error.module, end.error.qualname) == CLOSED:
            return None
        return error_of(self.played)

    def cut(self, error: ExchangeExhausted) -> ExchangeExhausted:
        """End the exchange, which waits for what the tape does not hold. Returns the error to raise."""
        exchange = self.exchange
        missing = exchange.call.missing()
        if missing > 0:
            error = ExchangeExhausted(
                f"nothing comes before message {exchange.sent_count + 1} is sent",
                cause=f"on the tape the program had sent {exchange.sent_count + missing} by then",
            )
        exchange.exhausted(error)
        return error

    def _send_close(self, original: Any, code: Any = None, reason: str = "") -> None:
        """Close the connection. The tape does not have this if the peer had closed first.

        The close of the peer is still pending: a replay delivers it when the program waits for it.
        """
        recorded, exchange = self.played.exchange, self.exchange
        left = recorded.parts[exchange.received_count :]
        closed = any(part.attributes.get(a.PLAYHEAD_WEBSOCKET_OPCODE) == "close" for part in left)
        if closed and not exchange.over and exchange.sent_count >= len(recorded.sent):
            original(code, reason)
        else:
            super()._send_close(original, code, reason)

    def _payload(self, data: bytes, opcode: str) -> bytes:
        """Return the random payload of a ping as it was when it was recorded."""
        sent, number = self.played.exchange.sent, self.exchange.sent_count
        if opcode != "ping" or len(data) != RANDOM_BYTES or number >= len(sent):
            return data
        if sent[number].attributes.get(a.PLAYHEAD_WEBSOCKET_OPCODE) == "ping":
            recorded = self.played.read(sent[number].data)
            if len(recorded) == RANDOM_BYTES:
                self._pings[recorded] = data
                return recorded
        return data


def fail_again(protocol: Any, item: Item) -> None:
    """Repeat an item that has no bytes: the connection was failed, or the bytes were malformed."""
    if item.opcode == "fail":
        protocol.fail(*close_of(item.data))
    elif item.opcode == "broken":
        protocol.parser.throw(error_in(item.data))


def opening_error(played: PlayedExchange) -> BaseException | None:
    """Return the error with which opening the connection failed, to be raised again; None: none."""
    return _proxy_error(played) or error_of(played, "request")


def _proxy_error(played: PlayedExchange) -> Exception | None:
    """Return the recorded refusal of a proxy, to be raised again; None if there is none."""
    end = played.exchange.end
    error = None if end is None else end.error
    if error is None or error.qualname != "InvalidProxyStatus" or len(error.args) != 2:
        return None
    http: Any = sys.modules["websockets.http11"]
    headers = sys.modules["websockets.datastructures"].Headers()
    return sys.modules["websockets.exceptions"].InvalidProxyStatus(http.Response(*error.args, headers))
