"""Results of libpq as the messages from which libpq made them."""

from __future__ import annotations

from typing import Any

from playhead_instrumentation.libraries.postgresql import messages
from playhead_instrumentation.libraries.postgresql.messages import Column

PARAMETERS = tuple(
    b"server_version server_encoding client_encoding application_name default_transaction_read_only "
    b"in_hot_standby is_superuser session_authorization DateStyle IntervalStyle TimeZone "
    b"integer_datetimes standard_conforming_strings search_path scram_iterations".split()
)
"""Parameters that a server tells of by itself."""

STATES = {0: b"I", 1: b"T", 2: b"T", 3: b"E", 4: b"I"}
"""How the server calls a state of the transaction, by the number that libpq has for it."""


class ServerNews:
    """What a connection knows of its server beside results."""

    def __init__(self, pgconn: Any) -> None:
        self.parameters: dict[bytes, bytes] = {}
        self.news: list[bytes] = []
        """Notices and notifications that came since they were last asked for."""
        self.changed(pgconn)

    def changed(self, pgconn: Any) -> bytes:
        """Messages about the parameters that have changed."""
        found = b""
        for name in PARAMETERS:
            value = pgconn.parameter_status(name)
            if value is not None and self.parameters.get(name) != value:
                self.parameters[name] = value
                found += messages.parameter(name, value)
        return found

    def told(self) -> bytes:
        """Messages about what came by the way."""
        news, self.news = b"".join(self.news), []
        return news


def ready(pgconn: Any) -> bytes:
    """The message with which the server waits for the next statement."""
    return messages.message(b"Z", STATES.get(int(pgconn.transaction_status), b"I"))


def written(result: Any, pq: Any) -> bytes:
    """Return the messages of one result. ``pq``: the module of psycopg."""
    status = pq.ExecStatus(result.status)
    if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.SINGLE_TUPLE):
        return _columns(result) + _rows(result) + _tag(result)
    if status == pq.ExecStatus.COMMAND_OK:
        # What has no tag is the shape of a cursor.
        return _tag(result) or (_columns(result) if result.nfields else messages.NO_ROWS)
    if status == pq.ExecStatus.FATAL_ERROR:
        return messages.fields(b"E", fields_of(result, pq))
    if status == pq.ExecStatus.EMPTY_QUERY:
        return messages.NOTHING
    if status in (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT):
        kind = b"G" if status == pq.ExecStatus.COPY_IN else b"H"
        formats = [result.fformat(place) for place in range(result.nfields)]
        return messages.copying(kind, result.binary_tuples, formats)
    return _rows(result) if getattr(pq.ExecStatus, "TUPLES_CHUNK", None) == status else b""


def piece(result: Any, pq: Any, *, first: bool) -> bytes:
    """Return the messages of a result that comes in pieces."""
    status = pq.ExecStatus(result.status)
    if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return (_columns(result) if first and result.nfields else b"") + _tag(result)
    if status == pq.ExecStatus.FATAL_ERROR:
        return messages.fields(b"E", fields_of(result, pq))
    return (_columns(result) if first else b"") + _rows(result)


def fields_of(result: Any, pq: Any) -> list[tuple[bytes, bytes]]:
    """Return the fields of an error or a notice."""
    found: list[tuple[bytes, bytes]] = []
    for field in pq.DiagnosticField:
        value = result.error_field(field)
        if value is not None:
            found.append((bytes([int(field)]), value))
    return found


def sqlstate(result: Any, pq: Any) -> str:
    """Return the code of an error; empty if the result is none."""
    if result.status != pq.ExecStatus.FATAL_ERROR:
        return ""
    return (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode("ascii", "replace")


def _columns(result: Any) -> bytes:
    return messages.columns(
        [
            Column(
                result.fname(place) or b"",
                result.ftable(place),
                result.ftablecol(place),
                result.ftype(place),
                result.fsize(place),
                result.fmod(place),
                result.fformat(place),
            )
            for place in range(result.nfields)
        ]
    )


def _rows(result: Any) -> bytes:
    places, value = range(result.nfields), result.get_value
    return b"".join(
        messages.row([value(number, place) for place in places]) for number in range(result.ntuples)
    )


def _tag(result: Any) -> bytes:
    tag = result.command_status
    return messages.message(b"C", tag + b"\0") if tag else b""
