"""A recorded response of httpx, in place of its transport; the decoder above it runs for real.

It also repeats what httpx shows of a connection: the address of the server in the network stream, and
the events of the ``trace`` extension. Its callback gets them again at the recorded points; the tape has
their names and the plain values of their details.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

import msgspec

from playhead_core.facts import ErrorRecord
from playhead_instrumentation.libraries.http.exchange import HttpExchange
from playhead_instrumentation.patching.lanes import In, current
from playhead_instrumentation.recorder.exceptions import again, is_own_doing
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_semconv import attributes as a


class Unanswered(Exception):
    """The recording ends here, but the answer was not complete."""


class RecordedResponse:
    """The response to one request, from its recording."""

    def __init__(self, played: PlayedExchange, module: Any) -> None:
        """``module``: httpx or httpx2, whose classes are used."""
        self._played = played
        self._module = module
        self.events = PlayedEvents(played)

    def head(self, streamed: Callable[[RecordedResponse], Any]) -> Any:
        """Return the response, with ``streamed(self)`` as its stream. Raises the recorded error."""
        exchange = self._played.exchange
        if not exchange.head:
            raise self._end()
        flat = [str(word).encode("latin-1") for word in exchange.head.get(a.PLAYHEAD_HTTP_HEADERS, [])]
        extensions: dict[str, Any] = {
            "http_version": str(exchange.head.get(a.PLAYHEAD_HTTP_VERSION, "HTTP/1.1")).encode()
        }
        if a.NETWORK_PEER_ADDRESS in exchange.head:
            extensions["network_stream"] = PlayedNetworkStream(peer_of(exchange.head))
        if a.PLAYHEAD_HTTP_STREAM_ID in exchange.head:
            extensions["stream_id"] = int(exchange.head[a.PLAYHEAD_HTTP_STREAM_ID])
        if a.PLAYHEAD_HTTP_REASON in exchange.head:
            extensions["reason_phrase"] = str(exchange.head[a.PLAYHEAD_HTTP_REASON]).encode("latin-1")
        at_once = self._played.at_once
        parts = range(len(exchange.parts))
        response = self._module.Response(
            int(exchange.head[a.HTTP_RESPONSE_STATUS_CODE]),
            headers=list(zip(flat[::2], flat[1::2], strict=True)),
            stream=self._module.ByteStream(b"".join(map(self._played.part, parts)))
            if at_once
            else streamed(self),
            extensions=extensions,
        )
        if at_once:
            response.read()
        return response

    def chunk(self, index: int) -> bytes | None:
        """Return a chunk of the answer; None at its end. Raises the recorded error."""
        exchange = self._played.exchange
        if index < len(exchange.parts):
            return self._played.part(index)
        if exchange.end is not None and exchange.end.how == "complete":
            return None
        raise self._end()

    def _end(self) -> BaseException:
        end = self._played.exchange.end
        error: ErrorRecord | None = None if end is None else end.error
        if error is None:
            return Unanswered()
        return Unanswered() if is_own_doing(error) else again(error, self._module.TransportError)


class _RecordedChunks:
    """The chunks of a recorded response. A new iteration continues where the last one stopped."""

    def __init__(self, response: RecordedResponse, trace: Any) -> None:
        self._response = response
        self._trace = trace
        self._events = response.events
        self._indices = itertools.count()


class RecordedStream(_RecordedChunks):
    """The chunks for a sync client."""

    def __iter__(self) -> Iterator[bytes]:
        self._report(self._events.first_chunk())
        try:
            for index in self._indices:
                chunk = self._response.chunk(index)
                if chunk is None:
                    break
                yield chunk
        except GeneratorExit:
            return
        except BaseException:
            self._report(self._events.rest())
            raise
        self._report(self._events.rest())

    def close(self) -> None:
        """As the stream does."""
        self._report(self._events.closed())

    def _report(self, events: Iterator[tuple[str, Any]]) -> None:
        if self._trace is not None:
            for event in events:
                self._trace(*event)


class AsyncRecordedStream(_RecordedChunks):
    """The chunks for an async client."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await self._report(self._events.first_chunk())
        try:
            for index in self._indices:
                chunk = self._response.chunk(index)
                if chunk is None:
                    break
                yield chunk
        except GeneratorExit:
            return
        except BaseException:
            await self._report(self._events.rest())
            raise
        await self._report(self._events.rest())

    async def aclose(self) -> None:
        """As the stream does."""
        await self._report(self._events.closed())

    async def _report(self, events: Iterator[tuple[str, Any]]) -> None:
        if self._trace is not None:
            for event in events:
                await self._trace(*event)


Details = Mapping[str, Any]

STARTED = ".started"
CLOSED = ".response_closed"


def recorded_trace(request: Any, exchange: HttpExchange) -> Callable[[str, Details], Any] | None:
    """Return the trace callback of ``request``, each call recorded and made in the lane of the program.

    None if the program gave no callback. The callback of an async client returns a coroutine.
    """
    callback = request.extensions.get("trace")
    if callback is None:
        return None
    lane = current()

    def note(name: str, details: Details) -> None:
        plain = {key: one if isinstance(one, _PLAIN) else None for key, one in details.items()}
        exchange.events.append(traced_event(name, plain))

    def trace(name: str, details: Details) -> Any:
        note(name, details)
        with In(lane):
            result: Any = callback(name, details)
        return _in(lane, result) if inspect.isawaitable(result) else result

    return trace


_PLAIN = (str, int, float)


async def _in(lane: Any, result: Awaitable[Any]) -> Any:
    with In(lane):
        return await result


class PlayedEvents:
    """The recorded events of one exchange, in the order in which the callback gets them again."""

    def __init__(self, played: PlayedExchange) -> None:
        end = played.exchange.end
        head = recorded_events(played.exchange.head)
        rest = [] if end is None else recorded_events(end.values)
        self._head, self._body = (head, rest) if played.exchange.head else (rest, [])
        self._prefix = self._head[-1][0].partition(".")[0] if self._head else ""

    def head(self) -> Iterator[tuple[str, Any]]:
        """Events until the head of the response, or the error instead of it."""
        yield from self._head

    def first_chunk(self) -> Iterator[tuple[str, Any]]:
        """Events when the program begins to read the body."""
        while self._body:
            event = self._body.pop(0)
            yield event
            if event[0].endswith(STARTED):
                return

    def rest(self) -> Iterator[tuple[str, Any]]:
        """Events at the end of the body."""
        while self._body:
            event = self._body.pop(0)
            if CLOSED in event[0]:
                self._prefix = ""
            yield event

    def closed(self) -> Iterator[tuple[str, Any]]:
        """Events when the response is closed: of a complete one they come after its last fact."""
        yield from self.rest()
        if self._prefix:
            closed, self._prefix = self._prefix + CLOSED, ""
            yield closed + STARTED, {}
            yield closed + ".complete", {"return_value": None}


class PlayedNetworkStream:
    """The network stream of a recorded response. It knows only the address of the server."""

    def __init__(self, peer: Any) -> None:
        self._peer = peer

    def get_extra_info(self, info: str) -> Any:
        """Return the recorded ``server_addr``; None for everything else."""
        return self._peer if info == "server_addr" else None


def peer_of(head: Mapping[str, Any]) -> Any:
    """Return the address in the attributes of a recorded head; None if the tape has none."""
    host, port = head.get(a.NETWORK_PEER_ADDRESS), head.get(a.NETWORK_PEER_PORT)
    if host is None or port is None:
        return host
    return (host, port, 0, 0) if ":" in str(host) else (host, port)


def traced_event(name: str, details: Any) -> str:
    """Return an event for a trace callback in the form of the tape. ``details``: a plain JSON value."""
    return f"{name} {msgspec.json.encode(details).decode()}"


def recorded_events(attributes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the events of a recorded fact, as names and details. Malformed ones are left out."""
    events: list[tuple[str, Any]] = []
    for event in attributes.get(a.PLAYHEAD_HTTP_EVENTS, ()):
        name, _, details = str(event).partition(" ")
        try:
            events.append((name, msgspec.json.decode(details)))
        except msgspec.DecodeError:
            continue
    return events
