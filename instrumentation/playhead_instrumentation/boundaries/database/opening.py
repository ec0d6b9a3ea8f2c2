"""The opening of a connection to a database: what the server said before the first call.

It is an exchange of the kind ``connect``, with all that the server said as its one part. What the driver
sent meanwhile, its password among it, is on no tape. In a service a connection outlives the request that
opened it, and a replay of another request has to open it again. So a request that uses a connection of
an earlier one says with what the server had welcomed it: the exchange is *standing*.
"""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Mapping
from typing import Any

from playhead_instrumentation.boundaries.database.exchange import Server
from playhead_instrumentation.boundaries.message_exchange import MessageExchange, MessageRequest
from playhead_instrumentation.boundaries.span_end import end_span
from playhead_instrumentation.driver.gate import Turn, running_loop
from playhead_instrumentation.driver.played_exchange import PlayedExchange
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a
from playhead_semconv.facts import Delivery

log = logging.getLogger(__name__)


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
        # Which thread takes a connection from a pool is chance; among tasks of one loop it is not.
        standing = {a.PLAYHEAD_ASK_STANDING: "program" if running_loop() is None else "service"}
        self._request = request = MessageRequest(
            "connect", f"{verb} {server.url}", body, standing, "read"
        )
        name = f"{verb} {server.namespace or server.address}"
        super().__init__(session, request, name, server.attributes)

    def turn(self) -> Turn:
        """The turn in which the connection is there, or has failed."""
        return self.call.arrive(self.received_count + 1)

    def opened(self, welcome: bytes, at: Delivery | None) -> Welcome:
        """The server has said ``welcome``, and the connection is there."""
        self.received(welcome, at)
        self.finished(at)
        return Welcome(self.session, self._request, welcome)

    def finish(self) -> None:
        """End the span, off the caller's path."""
        end_span(self._span, self.call.ended, self._ended_ns)


class Welcome:
    """What a server said when a connection was opened, and who has said so on its tape."""

    def __init__(self, session: Session, request: MessageRequest, data: bytes) -> None:
        self._session = session
        self._request = request
        self._data = data
        root = _root()
        self._of_request = root.of_request
        self._known: weakref.WeakSet[lanes.Lane] = weakref.WeakSet((root,))

    def used(self) -> None:
        """The connection is used: the request that does so says how it had been opened. Never raises."""
        if not self._of_request:
            return  # opened before the first request: every request has that on its tape
        root = _root()
        if root in self._known:
            return
        self._known.add(root)
        try:
            kind, key, body, details, effect = self._request
            call = self._session.driver.open(kind, key, body, details, effect=effect)
            call.part(self._data, None)
            call.end("complete")
        except Exception:
            log.debug("playhead could not record how a connection was opened", exc_info=True)


def begin_opening(
    session: Session, server: Server, parameters: Mapping[str, Any], verb: str = "CONNECT"
) -> OpeningConnection | None:
    """Open the exchange of a new connection; None when that failed. Raises at a replay."""
    try:
        session.settle()
        return OpeningConnection(session, server, parameters, verb)
    except Exception:
        if session.driver.closed:
            raise
        log.debug("playhead could not record a connection", exc_info=True)
        return None


def welcome_of(played: PlayedExchange) -> bytes:
    """What the server said in a recording; empty where the connection could not be opened."""
    return b"".join(played.part(index) for index in range(len(played.exchange.parts)))


def _root() -> lanes.Lane:
    lane = lanes.current()
    while lane.parent is not None:
        lane = lane.parent
    return lane
