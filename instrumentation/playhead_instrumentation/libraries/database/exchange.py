"""A call of a database as an exchange: its span and its facts.

An adapter for each driver moves the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from playhead_core.errors import WorldBlocked
from playhead_core.facts import Delivery
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange, MessageRequest
from playhead_instrumentation.libraries.common.recording import end_span
from playhead_instrumentation.libraries.database.reusable_responses import (
    STANDS,
    ReusableResponse,
    marks,
)
from playhead_instrumentation.libraries.database.set_up import answers_of, in_set_up
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

log = Log(__name__)


class Server(NamedTuple):
    """The server of a connection."""

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
    """A request to a database."""

    operation: str
    """As ``db.operation.name``."""
    body: bytes
    """The statement and its parameters, as JSON."""
    effect: Literal["read", "write"]
    attributes: dict[str, Any]
    """Further attributes of the span."""


class DatabaseExchange(MessageExchange):
    """State of one open call. Its parts are the bytes of the server."""

    __slots__ = ("_set_ups", "_sets_up", "attributes", "standing")

    def __init__(
        self, session: Session, server: Server, statement: Statement, *, stands: bool = False
    ) -> None:
        stands = stands or in_set_up()
        operation, body, effect, attributes = statement
        kind, marked = (STANDS, marks()) if stands else (server.system, {})
        request = MessageRequest(kind, f"{operation} {server.url}", body, marked, effect)
        super().__init__(
            session,
            request,
            f"{operation} {server.namespace or server.address}",
            {**server.attributes, a.DB_OPERATION_NAME: operation, **attributes},
        )
        self.call.headless()
        self.attributes: dict[str, Any] = {}
        """Further attributes of the span, known when it ends."""
        self.call.scrub = session.redactor.response("application/json", "")
        self.standing = ReusableResponse(session, request) if stands else None
        """The response, if later requests may reuse it; None: only this request gets it."""
        self._set_ups = answers_of(session, server.url)
        self._sets_up = in_set_up()
        if not self._sets_up:
            self._set_ups.used()

    def received(
        self, data: bytes, at: Delivery | None, attributes: Mapping[str, Any] | None = None
    ) -> None:
        """A part of the answer has arrived; the program does not have it yet."""
        super().received(data, at, attributes)
        if self.standing is not None:
            self.standing.parts.append(data)

    def finished(self, at: Delivery | None, said: Mapping[str, Any] | None = None) -> None:
        """The exchange ended normally. ``said``: values of the end."""
        super().finished(at, said)
        if self.standing is not None and self._sets_up:
            self._set_ups.add(self.standing)

    def finish(self) -> None:
        """End the span, off the caller's path."""
        end_span(self._span, self.call.ended, self._ended_ns, self.attributes)


def other_side(operation: str, why: str = "") -> WorldBlocked:
    """Return the error of a call that would go live on a recorded connection, or the reverse."""
    opened = "the connection was opened by the other of tape and world"
    return WorldBlocked(
        f"{operation} does not go out over this connection",
        cause=f"{opened}, and {why}" if why else opened,
        hint="fork before the connection is opened",
    )


def begin(
    session: Session, server: Server, statement: Statement, *, stands: bool = False
) -> DatabaseExchange | None:
    """Open the exchange of a call; None if that failed. Raises in a replay, which lets nothing out.

    ``stands``: whether later requests may reuse the response.
    """
    try:
        session.settle()
        return DatabaseExchange(session, server, statement, stands=stands)
    except Exception:
        if session.driver.closed:
            raise
        log.debug("playhead could not record a call of a database", exc_info=True)
        return None
