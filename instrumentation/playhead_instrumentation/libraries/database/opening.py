"""Record how a connection to a database is opened: what the server sent before the first call.

It is an exchange of the kind ``connect``, whose one part is all that the server sent. What the driver
sent meanwhile, including its password, is on no tape. Later requests reuse it (`reusable_responses`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from playhead_core.facts import Delivery
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange, MessageRequest
from playhead_instrumentation.libraries.common.recording import end_span
from playhead_instrumentation.libraries.database.exchange import Server
from playhead_instrumentation.libraries.database.reusable_responses import (
    STANDS,
    ReusableResponse,
    marks,
)
from playhead_instrumentation.recorder.exceptions import again as raised_again
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session

log = Log(__name__)


class OpeningConnection(MessageExchange):
    """One connection being opened."""

    __slots__ = ("_request",)

    def __init__(
        self, session: Session, server: Server, parameters: Mapping[str, Any], verb: str = "CONNECT"
    ) -> None:
        """``parameters``: what the connection is opened with, beside the server; no password.

        ``verb``: what is done towards it.
        """
        body = json.dumps(parameters, sort_keys=True, default=str).encode()
        self._request = request = MessageRequest(STANDS, f"{verb} {server.url}", body, marks(), "read")
        name = f"{verb} {server.namespace or server.address}"
        super().__init__(session, request, name, server.attributes)
        self.call.headless()

    def opened(self, at: Delivery | None, *said: bytes) -> ReusableResponse:
        """Record that the connection is open. ``said``: what the server sent."""
        standing = ReusableResponse(self.session, self._request)
        for data in said:
            self.received(data, at)
            standing.parts.append(data)
        self.finished(at)
        return standing

    def finish(self) -> None:
        """End the span, off the caller's path."""
        end_span(self._span, self.call.ended, self._ended_ns)


def begin_opening(
    session: Session, server: Server, parameters: Mapping[str, Any], verb: str = "CONNECT"
) -> OpeningConnection | None:
    """Open the exchange of a new connection; None when that failed. Raises in a replay."""
    try:
        session.settle()
        return OpeningConnection(session, server, parameters, verb)
    except Exception:
        if session.driver.closed:
            raise
        log.debug("playhead could not record a connection", exc_info=True)
        return None


def raise_again(played: PlayedExchange) -> None:
    """Raise the error with which the recorded exchange ended, if any."""
    end = played.exchange.end
    if end is not None and end.error is not None:
        raise raised_again(end.error, OSError)


async def fail_again(exchange: MessageExchange, played: PlayedExchange) -> None:
    """As `raise_again`, in a task. A cancelled opening waits until it is cancelled again."""
    if played.is_left:
        await exchange.permit()
    raise_again(played)


def welcome_of(played: PlayedExchange) -> bytes:
    """Return what the server sent in the recording; empty if the connection could not be opened."""
    return b"".join(played.part(index) for index in range(len(played.exchange.parts)))
