"""State of one connection of libpq: its requests and their responses."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.database.exchange import (
    DatabaseExchange,
    Server,
    begin,
    other_side,
)
from playhead_instrumentation.libraries.database.reusable_responses import ReusableResponse
from playhead_instrumentation.libraries.postgresql.psycopg import results
from playhead_instrumentation.libraries.postgresql.psycopg.stand_in import StandIn
from playhead_instrumentation.libraries.postgresql.psycopg.waiting import Steps
from playhead_instrumentation.libraries.postgresql.statement import Query, statement_of
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a


class DatabaseLink:
    """One connection. A driver sends one request at a time, or several in a pipeline."""

    def __init__(
        self, session: Session, server: Server, welcome: ReusableResponse, known: results.ServerNews
    ) -> None:
        self.session = session
        self.server = server
        self.welcome = welcome
        self.known = known
        self.stand_in: StandIn | None = None
        """Plays the server; None: the server is real."""
        self.exchange: DatabaseExchange | None = None
        """The request that is not answered in full."""
        self.played: PlayedExchange | None = None
        """Its recording, if one answers."""
        self.status = b"I"
        """Replay: the state of the transaction, as the server said it last."""
        self.quiet = b""
        """What a server says to a message of the driver that is no request, as the preparation of a
        statement; empty: no such message is under way."""
        self.queue: list[Query] = []
        """Statements of a pipeline that have not gone out."""
        self.awaited: deque[bytes | None] = deque()
        """Of each message of a pipeline that is not answered: as ``quiet``; None: it is a request."""
        self.syncs = 0
        """How often the pipeline is to be synchronised with the next statements."""
        self.reopens: Callable[[str], None] | None = None
        """Replay: takes the connection to the real server, for an operation."""
        self.settings: list[Query] = []
        """Replay: what the tape has set for the session."""
        self.prepared: dict[bytes, tuple[bytes, Sequence[int]]] = {}
        """Text and types of the parameters of each prepared statement, by its name."""
        self.being_prepared: dict[bytes, tuple[bytes, Sequence[int]]] = {}
        """The same of those whose preparation waits in a pipeline."""
        self.began = False
        """Whether the first piece of a result that comes in pieces has come."""

    def ask(self, asked: Sequence[Query], **more: Any) -> DatabaseExchange | None:
        """Open the exchange of statements that are about to go out. Raises what a replay refuses.

        ``more``: as for `statement_of`.
        """
        self.abandon()
        self.quiet, self.began = b"", False
        self.welcome.used()
        statement = statement_of(asked, self.session.redactor, **more)
        exchange = begin(self.session, self.server, statement)
        self.exchange, self.played = exchange, None
        if exchange is None:
            return None
        try:
            self.played = exchange.call.answer(lambda: None, lambda played: played)
            if self.played is None and self.stand_in is not None:
                self._goes_live(statement.operation)
            elif self.played is not None and self.stand_in is None:
                raise other_side(statement.operation)
        except BaseException as error:
            exchange.failed(error)
            self.exchange = None
            raise
        if self.played is not None:
            self.settings += [query for query in asked if query.sets]
        return exchange

    def _goes_live(self, operation: str) -> None:
        """Connect to the real server: the tape opened the connection and does not answer any more."""
        if self.reopens is None or self.stand_in is None:
            raise other_side(operation)
        self.reopens(operation)
        self.stand_in.close()
        self.stand_in = None

    def abandon(self) -> None:
        """Abandon the open request: the program reads no further."""
        if self.exchange is not None and not self.exchange.over:
            self.exchange.abandoned()
        self.exchange = None

    def note(self, found: Sequence[Any], pq: Any) -> None:
        """Describe the results on the span."""
        exchange = self.exchange
        if exchange is None:
            return
        rows = sum(one.ntuples for one in found)
        if rows:
            attributes = exchange.attributes
            attributes[a.DB_RESPONSE_RETURNED_ROWS] = rows + attributes.get(
                a.DB_RESPONSE_RETURNED_ROWS, 0
            )
        for one in found:
            code = results.sqlstate(one, pq)
            if code:
                exchange.attributes[a.DB_RESPONSE_STATUS_CODE] = code
                exchange.attributes[a.ERROR_TYPE] = code
                exchange.describe({}, error=code)
                break


ORIGINAL: Final[dict[str, Callable[..., Steps]]] = {}
"""The generators of psycopg that were replaced, by name."""

LINKS: Final[weakref.WeakKeyDictionary[Any, DatabaseLink]] = weakref.WeakKeyDictionary()
"""The links of open connections, by the connection of libpq."""

_loaded: Any = sys.modules
"""Modules of psycopg are looked up here: nothing is imported that the program did not import."""


def module(name: str) -> Any:
    """Return a module of psycopg."""
    return _loaded[f"psycopg.{name}"]


def libpq() -> Any:
    """Return the module of psycopg that wraps libpq."""
    return _loaded["psycopg"].pq


def steps(function: Any) -> Callable[..., Steps]:
    """Return a generator function of psycopg, as such."""
    return function


def link_of(pgconn: Any) -> DatabaseLink | None:
    """Return the link of a connection, if statements on it are recorded now."""
    link = LINKS.get(pgconn)
    return link if link is not None and recording_requests() is not None else None
