"""A recorded response of httpx, in place of its transport; the decoder above it runs for real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead_core.facts import ErrorRecord
from playhead_instrumentation.libraries.http.exchange import peer_of
from playhead_instrumentation.libraries.http.httpx_connections import PlayedEvents, PlayedNetworkStream
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
