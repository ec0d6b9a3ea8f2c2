"""Connections of `http.client` that the program opens itself, and the servers of connections.

Usually a request opens its connection, and a failure to connect ends that request. If the program calls
``connect`` before the request, a failure is recorded as a separate exchange; a success is not recorded.
The ordinal of the exchange is the number of connections that the lane opened before, so that a replay
fails the same connection. On older tapes, which lack these exchanges, no connection fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playhead_core.facts import ExchangeId
from playhead_instrumentation.libraries.common.recording import recording_requests_of_program
from playhead_instrumentation.libraries.http.exchange import (
    CONNECTS,
    DEFAULT_PORTS,
    HttpExchange,
    Outgoing,
    begin,
)
from playhead_instrumentation.libraries.http.framing import error_of
from playhead_instrumentation.libraries.http.http_client_streams import PlayedSocket
from playhead_instrumentation.patching.lanes import Shadow, current
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.redaction.redactor import Header
from playhead_instrumentation.session.session import Session


class Server(NamedTuple):
    """Scheme, host and port of a connection."""

    scheme: str
    host: str
    port: int | None


def server_of(connection: Any) -> Server:
    """Return the server of a connection; with a tunnel, the server behind the proxy."""
    tunnel = getattr(connection, "_tunnel_host", None)
    scheme = "https" if connection.default_port == DEFAULT_PORTS["https"] else "http"
    return Server(
        scheme, tunnel or connection.host, (tunnel and connection._tunnel_port) or connection.port
    )


def outgoing(
    method: str,
    server: Server,
    target: str,
    headers: Iterable[Header],
    body: bytes | None,
) -> Outgoing:
    """Describe a request for ``target``: a path, or a whole URL for a proxy."""
    scheme, host, port = server
    if "://" in target.partition("?")[0]:
        parts = urlsplit(target)
        known = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
        return Outgoing(method, target, headers, parts.hostname or "", known, body)
    default = DEFAULT_PORTS.get(scheme, 0)
    named = f"[{host}]" if ":" in host and not host.startswith("[") else host
    place = named if port in (None, default) else f"{named}:{port}"
    return Outgoing(method, f"{scheme}://{place}{target}", headers, host, port or default, body)


def init(original: Any, connection: Any, *arguments: Any, **options: Any) -> None:
    """Put `connect` around the ``connect`` of subclasses too, such as those of httplib2 and urllib3."""
    original(connection, *arguments, **options)
    if recording_requests_of_program() is None:
        return
    for one in type(connection).__mro__:
        if "connect" in vars(one) and one.__module__ != "http.client":
            PATCHES.around(one, "connect", connect)


def connect(original: Any, connection: Any) -> None:
    """Open a connection before its request."""
    session = recording_requests_of_program()
    if session is None:
        return original(connection)
    if session.driver.closed:
        if _fails_on_tape(session):
            exchange = begin(session, _opened, connection, kind=CONNECTS)
            if exchange is not None:
                return _again(exchange, original, connection)
        # If a tape answers the request, its answer replaces this socket; otherwise the request connects.
        current().next_ordinal(CONNECTS)
        connection.sock = PlayedSocket()
        return None
    try:
        with Shadow():
            original(connection)
    except Exception as error:
        exchange = begin(session, _opened, connection, kind=CONNECTS)
        if exchange is not None:
            exchange.failed(error, exchange.await_arrival())
        raise
    current().next_ordinal(CONNECTS)
    return None


def _fails_on_tape(session: Session) -> bool:
    """Whether the next connection of this lane has failed on the played tape."""
    lane, tape = current(), session.driver.tape
    ordinal = lane.counts()[0].get(CONNECTS, -1) + 1
    return tape is not None and tape.exchange(ExchangeId(lane.hash, CONNECTS, ordinal)) is not None


def _again(exchange: HttpExchange, original: Any, connection: Any) -> None:
    try:
        exchange.call.answer(_connected, _refused, original, connection)
    except Exception as error:
        exchange.failed(error, exchange.await_arrival())
        raise
    exchange.finished(exchange.await_arrival())


def _connected(original: Any, connection: Any) -> None:
    with Shadow():
        original(connection)


def _refused(played: PlayedExchange, *_: Any) -> None:
    raise error_of(played, OSError)


def _opened(connection: Any) -> Outgoing:
    return outgoing("CONNECT", server_of(connection), "", (), None)
