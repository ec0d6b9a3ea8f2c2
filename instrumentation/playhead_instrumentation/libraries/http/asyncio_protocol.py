"""The bytes of an answer in an asyncio protocol: recorded as they come, or fed from a recording."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from playhead_core.facts import Delivery
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.http.exchange import HttpExchange, Incoming
from playhead_instrumentation.libraries.http.framing import (
    TRUNCATED,
    Framing,
    error_of,
    frames,
    head,
    is_chunked,
)
from playhead_instrumentation.patching.lanes import current
from playhead_instrumentation.recorder.played_exchange import PlayedExchange

HEAD_END = re.compile(rb"\r?\n\r?\n")

log = Log(__name__)


class Listener:
    """Records the bytes of a protocol before the protocol gets them. Never raises."""

    def __init__(self, exchange: HttpExchange, method: str, *, streams: bool) -> None:
        self.exchange = exchange
        self.streams = streams
        """Whether the request body is streamed."""
        self.lane = current()
        self.feeder: asyncio.Task[None] | None = None
        """Replay: the task that feeds the recorded answer."""
        self._method = method
        self._head = b""
        self._framing: Framing | None = None

    def took(self, data: bytes) -> None:
        """Bytes have arrived."""
        try:
            if not self.exchange.over and self.feeder is None:
                self._take(data)
        except Exception:
            log.debug("playhead could not follow an answer", exc_info=True)

    def lost(self, error: Exception | None) -> None:
        """The connection has ended."""
        framing, exchange = self._framing, self.exchange
        if framing is None or exchange.over or self.feeder is not None:
            return
        missing = framing.cut() if error is None else None
        at = exchange.await_arrival()
        if error is not None:
            exchange.failed(error, at)
        elif missing is not None:
            exchange.broken(missing, at)
        else:
            exchange.finished(at)

    def broken(self, error: Exception) -> None:
        """The program gets ``error`` instead of the rest of the answer."""
        exchange = self.exchange
        if self._framing is not None and not exchange.over and self.feeder is None:
            exchange.failed(error, exchange.await_arrival())

    def left(self, why: BaseException | None) -> None:
        """The program reads no further; ``why``: the exception that it is handling."""
        if self.feeder is not None:
            self.feeder.cancel()
        if self.exchange.attempt.status_code is None:
            return
        if isinstance(why, asyncio.CancelledError):
            self.exchange.failed(why)
        else:
            self.exchange.abandoned()

    def _take(self, data: bytes) -> None:
        """Record what one read of the socket brought, as one delivery.

        The program may leave after the head, without a look at a body that came in the same read.
        """
        exchange = self.exchange
        framing = self._framing
        at = None
        if framing is None:
            self._head += data
            found = HEAD_END.search(self._head)
            while found is not None and _status(self._head) < 200 and _status(self._head) != 101:
                self._head = self._head[found.end() :]
                found = HEAD_END.search(self._head)
            if found is None:
                return
            top, data = self._head[: found.start()], self._head[found.end() :]
            at = exchange.await_arrival()
            exchange.answered(incoming, top, at)
            self._framing = framing = _framing(top, self._method)
        pieces: list[bytes] = []
        missing = None
        try:
            pieces = framing.pieces(data)
        except ValueError:
            missing = framing.cut()
        if at is None and (pieces or missing is not None or framing.over):
            at = exchange.await_arrival()
        for piece in pieces:
            exchange.received(piece, at)
        if missing is not None:
            exchange.broken(missing, at)
        elif framing.over:
            exchange.finished(at)


async def feed(exchange: HttpExchange, protocol: Any, played: PlayedExchange) -> None:
    """Feed a recorded answer to ``protocol``; parts of one batch are fed together."""
    call, recorded = exchange.call, played.exchange
    waiting: list[bytes] = []
    whole = recorded.end is not None and recorded.end.how == "complete"
    at: Delivery | None = None

    async def arrival(index: int) -> Delivery | None:
        before, due = played.due(index - 1) if index else None, played.due(index)
        if before is not None and before == due:
            return at  # the same read brought both
        # If nothing was delivered between the last part and the end, both were in the same bytes: a
        # program that has all bytes may continue without waiting for the end.
        gap = 1 if index > len(recorded.parts) and whole else 0
        if waiting and (before is None or due is None or due.batch - before.batch > gap):
            protocol.data_received(b"".join(waiting))
            waiting.clear()
        return await call.arrive()

    try:
        top = head(played)
        at = await arrival(0)
        exchange.answered(incoming, top[:-4], at)
        waiting.append(top)
        body = frames(played, OSError)
        for index in range(len(recorded.parts)):
            at = await arrival(index + 1)
            waiting.append(next(body))
            exchange.received(played.part(index), at)
        end, at = recorded.end, await arrival(len(recorded.parts) + 1)
        if end is not None and end.error is not None:
            exchange.broken(end.error, at)
        else:
            exchange.finished(at)
        cut = end is not None and end.error is not None
        error = None
        if end is None or end.error is None or (end.error.module, end.error.qualname) == TRUNCATED:
            waiting.extend(body)
        else:
            error = error_of(played, OSError)
        if waiting:
            protocol.data_received(b"".join(waiting))
        if cut or not _ends_by_itself(top):
            _break(protocol, error)
    except Exception as error:
        exchange.failed(error)
        _break(protocol, error)


def _break(protocol: Any, error: BaseException | None) -> None:
    """End the connection of ``protocol`` as in the recording."""
    if error is None or type(error).__module__ == "builtins":
        protocol.connection_lost(error)
        return
    protocol.set_exception(error)
    payload = getattr(protocol, "_payload", None)
    if payload is not None:
        payload.set_exception(error)


def transport_of(protocol: Any, loop: asyncio.AbstractEventLoop, peer: Any = None) -> asyncio.Transport:
    """A transport that drops what is written and delivers nothing. ``peer``: address of its peer."""
    return _Nowhere(protocol, loop, {} if peer is None else {"peername": peer})


class _Nowhere(asyncio.Transport):
    def __init__(self, protocol: Any, loop: asyncio.AbstractEventLoop, extra: Mapping[str, Any]) -> None:
        super().__init__(extra)
        self._protocol = protocol
        self._loop = loop
        self._closing = False

    def write(self, data: Any) -> None:
        """No-op: nothing is sent."""

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        """No-op: the gate decides when bytes come."""

    def resume_reading(self) -> None:
        """No-op: the gate decides when bytes come."""


def incoming(top: bytes) -> Incoming:
    """Parse the head of an answer, given without its final empty line."""
    line, *_ = top.partition(b"\n")
    version, _, rest = line.decode("latin-1").strip().partition(" ")
    code, _, reason = rest.partition(" ")
    headers = _headers(top)
    named = {name.lower(): value for name, value in reversed(headers)}
    return Incoming(
        int(code),
        headers,
        version,
        reason,
        named.get(b"content-type", b"").decode("latin-1"),
        named.get(b"content-encoding", b"").decode("latin-1"),
    )


def _headers(top: bytes) -> list[tuple[bytes, bytes]]:
    lines = (line.partition(b":") for line in top.split(b"\n")[1:])
    return [(name.strip(), value.strip()) for name, colon, value in lines if colon]


def _status(top: bytes) -> int:
    return int(top.split(None, 2)[1])


def _framing(top: bytes, method: str) -> Framing:
    status = _status(top)
    if method in ("HEAD", "CONNECT") or status in (204, 304) or status < 200:
        return Framing(chunked=False, length_bytes=0)
    chunked, length = _length(top)
    return Framing(chunked=chunked, length_bytes=length)


def _length(top: bytes) -> tuple[bool, int | None]:
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in _headers(top)]
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    return is_chunked(headers), int(lengths[0]) if lengths and lengths[0].isdigit() else None


def _ends_by_itself(top: bytes) -> bool:
    """Return whether the end of the answer is recognisable without the end of the connection."""
    chunked, length = _length(top)
    return chunked or length is not None or _status(top) in (204, 304)
