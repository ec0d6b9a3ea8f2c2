"""Record how psycopg opens a connection; a replay opens it again, and a fork connects it for real."""

from __future__ import annotations

import functools
import ipaddress
import json
import os
import weakref
from typing import Any, Final

from playhead_core.errors import ExchangeExhausted
from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.database.exchange import Server, other_side
from playhead_instrumentation.libraries.database.opening import (
    begin_opening,
    fail_again,
    raise_again,
    welcome_of,
)
from playhead_instrumentation.libraries.postgresql import messages
from playhead_instrumentation.libraries.postgresql.psycopg import results
from playhead_instrumentation.libraries.postgresql.psycopg.link import (
    LINKS,
    ORIGINAL,
    DatabaseLink,
    libpq,
    module,
)
from playhead_instrumentation.libraries.postgresql.psycopg.stand_in import StandIn
from playhead_instrumentation.libraries.postgresql.psycopg.waiting import Steps, arrival, outside
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.recorder.played_exchange import PlayedExchange

SECRETS: Final = frozenset(("password", "sslpassword", "oauth_client_secret"))
"""Parameters of a connection that go on no tape."""

PLACE: Final = frozenset(("host", "hostaddr", "port", "dbname"))
"""Parameters of a connection that name its server."""


def connect(conninfo: str) -> Steps:
    """Replace the generator that opens a connection."""
    session = recording_requests()
    if session is None:
        return (yield from ORIGINAL["connect"](conninfo))
    params: dict[str, Any] = module("conninfo").conninfo_to_dict(conninfo)
    server = _server(params)
    told = {name: value for name, value in params.items() if name not in SECRETS | PLACE}
    opening = begin_opening(session, server, told)
    if opening is None:
        return (yield from ORIGINAL["connect"](conninfo))
    stand_in: StandIn | None = None

    def live() -> Steps:
        with outside():
            return (yield from ORIGINAL["connect"](conninfo))

    def again(played: PlayedExchange) -> Steps:
        nonlocal stand_in
        if played.is_left:
            yield from arrival(opening)  # until it is left again
        raise_again(played)
        stand_in = StandIn(server.port)
        return _connected(stand_in, params, welcome_of(played))

    try:
        pgconn = yield from opening.call.answer(live, again)
    except Exception as error:
        at = yield from arrival(opening)
        opening.failed(error, at)
        raise
    except BaseException as error:
        opening.failed(error)
        raise
    at = yield from arrival(opening)
    known = results.ServerNews(pgconn)
    said = messages.welcome(known.parameters, pgconn.backend_pid, results.STATES[0])
    link = DatabaseLink(session, server, opening.opened(at, said), known)
    if stand_in is not None:
        link.stand_in, link.reopens = stand_in, Reopening(link, pgconn, _asked_anew(params))
    LINKS[pgconn] = link
    return pgconn


def _connected(stand_in: StandIn, params: dict[str, Any], welcome: bytes) -> Any:
    """Return a connection of libpq to the server that stands in."""
    pq = libpq()
    kept = {
        name: params[name] for name in ("user", "dbname", "port", "client_encoding") if params.get(name)
    }
    kept |= {"host": stand_in.name, "gssencmode": "disable", "sslmode": "disable"}
    pgconn = pq.PGconn.connect_start(module("conninfo").make_conninfo("", **kept).encode())
    polled = pgconn.connect_poll()
    stand_in.accept()
    stand_in.drop()
    stand_in.tell(welcome)
    while polled in (pq.PollingStatus.READING, pq.PollingStatus.WRITING):
        polled = pgconn.connect_poll()
    if polled != pq.PollingStatus.OK:
        raise ExchangeExhausted(
            "the recorded connection cannot be opened again", cause=pgconn.get_error_message()
        )
    pgconn.nonblocking = 1
    return pgconn


def _server(params: dict[str, Any]) -> Server:
    def said(name: str, variable: str, otherwise: str) -> str:
        return str(params.get(name) or os.environ.get(variable) or otherwise)

    host = said("host", "PGHOST", str(params.get("hostaddr") or "localhost"))
    port = said("port", "PGPORT", "5432").split(",")[0]
    user = said("user", "PGUSER", "")
    return Server(
        "postgresql", host, int(port) if port.isdigit() else 0, said("dbname", "PGDATABASE", user)
    )


def _asked_anew(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters for the real server, whose name is looked up again."""
    by_name = {name: value for name, value in params.items() if name != "hostaddr"}
    return by_name if _name_of(by_name) else params


def _name_of(params: Any) -> str:
    """Return the name of a host that has to be looked up; empty: there is none."""
    host = str(params.get("host") or "")
    if params.get("hostaddr") or host[:1] in ("", "/", "@"):
        return ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host
    return ""


def resolving(original: Any, params: Any) -> Any:
    """Record the look-up of a server's name."""
    session, name = recording_requests(), _name_of(params)
    found = begin_opening(session, _server(params), {}, "RESOLVE") if session and name else None
    if found is None:
        return original(params)

    def live() -> Any:
        with Outside():
            return original(params)

    try:
        try:
            attempts = found.call.answer(live, functools.partial(_resolved, params))
        except Exception as error:
            found.failed(error, found.permit().wait())
            raise
        at = found.permit().wait()
    except BaseException as error:
        found.failed(error)
        raise
    found.opened(at, _addresses(attempts))
    return attempts


async def resolving_async(original: Any, params: Any) -> Any:
    """As `resolving`, without blocking."""
    session, name = recording_requests(), _name_of(params)
    found = begin_opening(session, _server(params), {}, "RESOLVE") if session and name else None
    if found is None:
        return await original(params)

    async def live() -> Any:
        with Shadow():
            return await original(params)

    async def again(played: PlayedExchange) -> Any:
        await fail_again(found, played)
        return _resolved(params, played)

    try:
        try:
            attempts = await found.call.answer(live, again)
        except Exception as error:
            found.failed(error, await found.permit())
            raise
        at = await found.permit()
    except BaseException as error:
        found.failed(error)
        raise
    found.opened(at, _addresses(attempts))
    return attempts


def _addresses(attempts: Any) -> bytes:
    return json.dumps([attempt.get("hostaddr") for attempt in attempts]).encode()


def _resolved(params: Any, played: PlayedExchange) -> list[dict[str, Any]]:
    raise_again(played)
    return [{**params, "hostaddr": address} for address in json.loads(welcome_of(played))]


class Reopening:
    """Connect one recorded connection to the real server, when a fork or a resume goes live.

    libpq keeps its connection and gets another socket below it: the socket of a connection that is
    opened with the program's own parameters. So no transaction may be open, and the socket must carry
    the protocol unencrypted. Session settings and prepared statements are sent again.
    """

    def __init__(self, link: DatabaseLink, pgconn: Any, params: dict[str, Any]) -> None:
        """``params``: what the program connects with, its password too; on no tape."""
        self._link = weakref.ref(link)
        self._pgconn = weakref.ref(pgconn)
        self._params = {"gssencmode": "disable"} | params
        self._real: Any = None
        """The connection that opened the socket. Closing it would end the session."""

    def __call__(self, operation: str) -> None:
        """Open it. Raises `WorldBlocked` if that is not safe, the error of psycopg if it fails."""
        pq, pgconn, link = libpq(), self._pgconn(), self._link()
        if pgconn is None or link is None or pgconn.transaction_status != pq.TransactionStatus.IDLE:
            raise other_side(operation, "a transaction or a pipeline that the tape began is open on it")
        info: str = module("conninfo").make_conninfo("", **self._params)
        with Shadow():
            self._real = real = pq.PGconn.connect(info.encode())
            if real.status != pq.ConnStatus.OK:
                raise module("errors").OperationalError(real.get_error_message())
            if real.ssl_in_use:
                real.finish()
                raise other_side(operation, "the real server is reached over an encrypted connection")
            for query in link.settings:
                real.exec_params(query.text, query.params)
            for name, (text, types) in link.prepared.items():
                real.prepare(name, text, types)
        os.dup2(real.socket, pgconn.socket, inheritable=False)
