"""A call of a database as an exchange: its span and its facts.

An edge for each driver moves the bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from playhead_instrumentation.boundaries.message_exchange import MessageExchange, MessageRequest
from playhead_instrumentation.boundaries.span_end import end_span
from playhead_instrumentation.driver.gate import Turn
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

log = logging.getLogger(__name__)


class Server(NamedTuple):
    """Where a connection leads."""

    system: str
    """As ``db.system.name``; also the kind of its exchanges."""
    address: str
    """Host name, or the path of a socket."""
    port: int
    """0: there is none."""
    namespace: str
    """Database within the server."""

    @property
    def url(self) -> str:
        """The server and the database, without credentials."""
        at = f"{self.address}:{self.port}" if self.port else self.address
        return f"{self.system}://{at}/{self.namespace}"

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the spans of its calls."""
        found: dict[str, Any] = {a.DB_SYSTEM_NAME: self.system, a.SERVER_ADDRESS: self.address}
        if self.port:
            found[a.SERVER_PORT] = self.port
        if self.namespace:
            found[a.DB_NAMESPACE] = self.namespace
        return found


class Statement(NamedTuple):
    """What the program asks of a database."""

    operation: str
    """As ``db.operation.name``."""
    body: bytes
    """The statement and its parameters, as JSON."""
    effect: Literal["read", "write"]
    attributes: Mapping[str, Any]
    """Further attributes of the span."""


class DatabaseExchange(MessageExchange):
    """What is known of one call while it is in progress. Its parts are the bytes of the server."""

    __slots__ = ("attributes",)

    def __init__(self, session: Session, server: Server, statement: Statement) -> None:
        operation, body, effect, attributes = statement
        super().__init__(
            session,
            MessageRequest(server.system, f"{operation} {server.url}", body, {}, effect),
            f"{operation} {server.namespace or server.address}",
            {**server.attributes, a.DB_OPERATION_NAME: operation, **attributes},
        )
        self.attributes: dict[str, Any] = {}
        """Further attributes of the span, known when it ends."""
        self.call.scrub = session.redactor.response("application/json", "")

    def turn(self) -> Turn:
        """The turn of the next part, or of the end where all parts have come."""
        return self.call.arrive(self.received_count + 1)

    def finish(self) -> None:
        """End the span, off the caller's path."""
        end_span(self._span, self.call.ended, self._ended_ns, self.attributes)


def begin(session: Session, server: Server, statement: Statement) -> DatabaseExchange | None:
    """Open the exchange of a call; None when that failed. Raises at a replay, which lets nothing out."""
    try:
        session.settle()
        return DatabaseExchange(session, server, statement)
    except Exception:
        if session.driver.closed:
            raise
        log.debug("playhead could not record a call of a database", exc_info=True)
        return None
