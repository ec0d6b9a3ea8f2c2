"""Record the exchanges of one Redis connection: commands sent together, and the replies to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, TypeVar

from playhead_core.facts import Delivery
from playhead_instrumentation.libraries.database.exchange import DatabaseExchange, Server, begin
from playhead_instrumentation.libraries.database.reusable_responses import ReusableResponse
from playhead_instrumentation.libraries.redis.resp import Replies, commands
from playhead_instrumentation.libraries.redis.statement import LISTENS, statement_of
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

HEARD: Final = "_playhead_heard"
"""Attribute of a connection: what listens to it."""

_Heard = TypeVar("_Heard")


def patch_connections(
    module: ModuleType,
    opening: Callable[..., Any],
    connecting: Callable[..., Any],
    layers: Mapping[str, Callable[..., Any]],
) -> None:
    """Patch the connections of ``redis.connection`` or its twin for asyncio. Raises `Unpatchable`.

    ``opening`` stands around opening one, ``connecting`` around the step that makes what is below it,
    and ``layers`` around further methods, by their names.
    """
    connection: Any = required(module, "AbstractConnection")
    opens = "connect_check_health" if hasattr(connection, "connect_check_health") else "connect"
    PATCHES.around_all(connection, {opens: opening, **layers})
    for name in ("Connection", "SSLConnection", "UnixDomainSocketConnection"):
        owner = getattr(module, name, None)
        if owner is not None and "_connect" in owner.__dict__:
            PATCHES.around(owner, "_connect", connecting)


def heard_of(connection: Any, make: Callable[[], _Heard]) -> _Heard:
    """What listens to a connection, made if nothing does yet."""
    found: _Heard | None = connection.__dict__.get(HEARD)
    if found is None:
        found = connection.__dict__[HEARD] = make()
    return found


ENDLESS: Final = 1 << 62
"""Replies that are awaited if the server says things of its own accord."""


def server_of(connection: Any) -> Server:
    """Return the server of a connection of redis-py."""
    path = getattr(connection, "path", "")
    host = str(path or getattr(connection, "host", "") or "")
    port = 0 if path else int(getattr(connection, "port", 0) or 0)
    return Server("redis", host, port, str(connection.db or 0))


def parameters_of(connection: Any) -> dict[str, Any]:
    """What a connection is opened with, beside its server."""
    checks = getattr(connection, "health_check_interval", 0)  # then it begins with a PING
    named = {
        "user": getattr(connection, "username", None),
        "client": connection.client_name,
        "health_check_s": checks,
    }
    return {
        **{name: value for name, value in named.items() if value},
        "protocol": str(getattr(connection, "protocol", 2)),
    }


class Talk:
    """State of one connection. The thread that reads may differ from the one that sends."""

    def __init__(self, session: Session, server: Server) -> None:
        self.session = session
        self.server = server
        self.exchange: DatabaseExchange | None = None
        """The last exchange."""
        self.played: PlayedExchange | None = None
        """Its recording, if one answers."""
        self.welcome: ReusableResponse | None = None
        """How the connection was opened."""
        self.permit: Permit | None = None
        """The permit that a reader waits for."""
        self._replies = Replies(0)
        self._listens = False

    @property
    def goes_on(self) -> bool:
        """Whether something is awaited."""
        return self.exchange is not None and not self.exchange.over

    def ask(self, data: bytes, opens: Callable[[], None]) -> None:
        """Record ``data`` before it goes out. ``opens``: called if the real server answers.

        Raises what a replay refuses.
        """
        self.settled()
        words = commands(data)
        if self.welcome is not None:
            self.welcome.used()
        exchange = begin(self.session, self.server, statement_of(words, self.session.redactor))
        self._listens |= any(command and command[0].upper() in LISTENS for command in words)
        self._replies = Replies(ENDLESS if self._listens else len(words))
        waited, self.permit = self.permit, None
        self.exchange, self.played = exchange, None
        if waited is not None:
            waited.give_up()
        if exchange is None:
            return
        try:
            self.played = exchange.call.answer(lambda: opens(), lambda played: played)
        except BaseException as error:
            exchange.failed(error)
            raise

    def settled(self) -> None:
        """End the last request: another one is sent, or the connection is closed."""
        exchange = self.exchange
        if exchange is not None and not exchange.over:
            if self._listens:
                exchange.finished(None)
            else:
                exchange.abandoned()

    def came(self, exchange: DatabaseExchange, data: bytes, at: Delivery | None) -> None:
        """Record ``data`` of the server before the program gets it."""
        exchange.received(data, at)
        if self._replies.feed(data):
            self.over(exchange, at)

    def over(self, exchange: DatabaseExchange, at: Delivery | None) -> None:
        """End the exchange: all replies arrived, or the server closed the connection."""
        failure = self._replies.failure
        if failure:
            code = failure.split(b" ")[0].decode("ascii", "replace")
            exchange.attributes[a.DB_RESPONSE_STATUS_CODE] = code
            exchange.describe({a.ERROR_TYPE: code}, error=code)
        exchange.finished(at)

    def nothing(self, exchange: DatabaseExchange, error: str, at: Delivery | None) -> None:
        """Record that nothing arrived in time. ``error``: class of the error that the program gets."""
        exchange.received(b"", at, {a.ERROR_TYPE: error})
