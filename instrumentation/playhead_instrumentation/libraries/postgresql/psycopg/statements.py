"""Record what psycopg hands to libpq, and notices that libpq reports: layers of psycopg's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.postgresql import messages
from playhead_instrumentation.libraries.postgresql.psycopg import results
from playhead_instrumentation.libraries.postgresql.psycopg.link import (
    LINKS,
    DatabaseLink,
    libpq,
    link_of,
    steps,
)
from playhead_instrumentation.libraries.postgresql.psycopg.waiting import Steps
from playhead_instrumentation.libraries.postgresql.statement import Query

log = Log(__name__)


def _asked(connection: Any, link: DatabaseLink, query: Query) -> None:
    if connection._pipeline:
        link.queue.append(query)
        link.awaited.append(None)
    else:
        link.ask([query])


def _quietly(connection: Any, link: DatabaseLink, answer: bytes) -> None:
    """Expect the response to a message that is not a request of the program."""
    if connection._pipeline:
        link.awaited.append(answer)
    else:
        link.quiet = answer


def sending(original: Any, cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a statement that goes out."""
    link = link_of(cursor._pgconn)
    if link is not None:
        _asked(cursor._conn, link, Query(query.query, query.params))
    return original(cursor, query, *args, **kwargs)


def sending_prepared(original: Any, cursor: Any, name: Any, query: Any, **kwargs: Any) -> Any:
    """Record a prepared statement that goes out."""
    link = link_of(cursor._pgconn)
    if link is not None:
        _asked(cursor._conn, link, Query(query.query, query.params))
    return original(cursor, name, query, **kwargs)


def preparing(original: Any, cursor: Any, name: Any, query: Any) -> Any:
    """Record that psycopg prepares a statement on its own initiative."""
    link = link_of(cursor._pgconn)
    if link is not None:
        _quietly(cursor._conn, link, messages.PREPARED)
        known = link.being_prepared if cursor._conn._pipeline else link.prepared
        known[name] = query.query, query.types
    return original(cursor, name, query)


def describing(original: Any, cursor: Any) -> Steps:
    """Record the request for the columns of a server-side cursor."""
    link = link_of(cursor._pgconn)
    if link is not None:
        link.ask([Query(b"DESCRIBE " + cursor._name.encode(cursor._encoding))])
    return (yield from steps(original)(cursor))


def commanding(original: Any, connection: Any, command: Any, *args: Any, **kwargs: Any) -> Steps:
    """Record a command of the connection: the begin or end of a transaction, a fetch."""
    link = link_of(connection.pgconn)
    if link is not None and connection.pgconn.status == libpq().ConnStatus.OK:
        if isinstance(command, str):
            command = command.encode(connection.pgconn._encoding)
        elif not isinstance(command, bytes):
            command = command.as_bytes(connection)
        if command.startswith(b"DEALLOCATE"):
            _quietly(connection, link, messages.message(b"C", b"DEALLOCATE\0"))
            link.prepared.clear()
        else:
            _asked(connection, link, Query(command))
    return (yield from steps(original)(connection, command, *args, **kwargs))


def deallocating(original: Any, connection: Any, name: Any) -> Steps:
    """Record that a prepared statement is deallocated."""
    link = link_of(connection.pgconn)
    if link is not None:
        _quietly(connection, link, messages.CLOSED)
        link.prepared.pop(name, None)
    return (yield from steps(original)(connection, name))


def synchronising(original: Any, pipeline: Any) -> None:
    """Record that a pipeline is synchronised."""
    link = link_of(pipeline.pgconn)
    if link is not None:
        link.syncs += 1
        link.awaited.append(None)
    original(pipeline)


def cancelling(original: Any, connection: Any, *args: Any, **kwargs: Any) -> Steps:
    """Cancel a statement; the result of that is the response to the statement."""
    link = LINKS.get(connection.pgconn)
    if link is not None and link.stand_in is not None:
        return None  # what came of it is on the tape
    return (yield from steps(original)(connection, *args, **kwargs))


def noticed(original: Any, reference: Any, result: Any) -> Any:
    """Record a notice of the server."""
    _news(reference, _notice, result)
    return original(reference, result)


def notified(original: Any, reference: Any, said: Any) -> Any:
    """Record a notification of the server."""
    _news(reference, _notification, said)
    return original(reference, said)


def _notice(result: Any) -> bytes:
    return messages.fields(b"N", results.fields_of(result, libpq()))


def _notification(said: Any) -> bytes:
    return messages.notification(said.be_pid, said.relname, said.extra)


def _news(reference: Any, message: Callable[[Any], bytes], said: Any) -> None:
    try:
        connection = reference()
        link = None if connection is None else LINKS.get(connection.pgconn)
        if link is not None and link.stand_in is None:
            link.known.news.append(message(said))
    except Exception:
        log.debug("playhead could not record a notice", exc_info=True)
