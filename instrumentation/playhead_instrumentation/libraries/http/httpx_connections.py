"""Record what httpx shows of a connection: events of its ``trace`` extension and its network stream.

The tape has the names of the events, the plain values of their details, and the address of the server. A
replay calls the callback of the program again at the recorded points.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from playhead_instrumentation.libraries.http.exchange import HttpExchange, recorded_events, traced_event
from playhead_instrumentation.patching.lanes import In, current
from playhead_instrumentation.recorder.played_exchange import PlayedExchange

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
