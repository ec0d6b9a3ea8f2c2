"""A connection that the tape opened goes on at the real server, where a fork or a resume asks the world.

libpq keeps its connection and gets another socket below it: that of a connection which is opened with
what the program connects with. So nothing may be under way, and the socket has to carry the protocol as
it is, not encrypted. What the program has set for the session and prepared is there again.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from playhead_instrumentation.libraries.database.exchange import other_side
from playhead_instrumentation.libraries.postgresql.psycopg.link import DatabaseLink
from playhead_instrumentation.libraries.postgresql.psycopg.links import libpq, module
from playhead_instrumentation.patching.lanes import Shadow


class Reopening:
    """How one connection is opened at the real server."""

    def __init__(self, link: DatabaseLink, pgconn: Any, params: dict[str, Any]) -> None:
        """``params``: what the program connects with, its password too; on no tape."""
        self._link = weakref.ref(link)
        self._pgconn = weakref.ref(pgconn)
        self._params = {"gssencmode": "disable"} | params
        self._real: Any = None
        """The connection that has opened the socket. Its end would end the session."""

    def __call__(self, operation: str) -> None:
        """Open it. Raises `WorldBlocked` where that is not safe, the error of psycopg where it fails."""
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
