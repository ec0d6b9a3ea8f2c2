"""Read the requests of a PostgreSQL client from the messages that it sends.

https://www.postgresql.org/docs/current/protocol-flow.html
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from playhead_instrumentation.libraries.postgresql.messages import split
from playhead_instrumentation.libraries.postgresql.statement import Query, text_of
from playhead_instrumentation.libraries.postgresql.values import plain


class ClientRequest(NamedTuple):
    """The messages that go out together."""

    kinds: bytes
    """The kinds of its messages, one letter each."""
    queries: Sequence[Query]
    """Statements that are prepared or executed, with their parameters."""
    more: dict[str, Any]
    """Further properties of the request."""
    pieces: Sequence[bytes]
    """What is copied in."""

    @property
    def prepares(self) -> bool:
        """Whether a statement is only described, and nothing is executed."""
        return self.kinds.endswith(b"H")

    @property
    def awaits_ready(self) -> bool:
        """Whether the server will say that it is ready."""
        return self.kinds[-1:] in (b"Q", b"S")


class RequestReader:
    """Reads what goes out over one connection, and keeps what was prepared on it."""

    def __init__(self) -> None:
        self.statements: dict[bytes, bytes] = {}
        """Texts of statements, by name."""
        self._types: dict[bytes, Sequence[int]] = {}
        """Types of the parameters of statements, by text."""
        self._cursors: dict[bytes, Query] = {}
        """What cursors go through, by name."""

    def typed(self, text: bytes, types: Sequence[int]) -> None:
        """Note the types that the server reports for the parameters of a statement."""
        self._types[text] = types

    def read(self, data: bytes) -> ClientRequest:
        """Return the request in ``data``, whole messages. ValueError or IndexError if malformed."""
        kinds, queries, pieces = b"", list[Query](), list[bytes]()
        more: dict[str, Any] = {}
        parsed: Query | None = None
        for kind, body in split(data):
            kinds += kind
            if kind == b"P":
                name, text, _ = body.split(b"\0", 2)
                self.statements[name], parsed = text, Query(text)
            elif kind == b"Q":
                queries.append(Query(body.rstrip(b"\0")))
            elif kind == b"B":
                cursor, query = self._bound(body)
                queries.append(query)
                if cursor:
                    self._cursors[cursor] = query
                    more["cursor"] = "opens"
            elif kind == b"E":
                cursor, rest = body.split(b"\0", 1)
                rows = int.from_bytes(rest[:4])
                if rows:
                    more["rows"] = rows
                if b"B" not in kinds:
                    queries.append(self._cursors[cursor])
                    more["cursor"] = "fetches"
            elif kind == b"C" and body[:1] == b"P":
                queries.append(self._cursors.pop(body[1:-1]))
                more["cursor"] = "closes"
            elif kind == b"C":
                self.statements.pop(body[1:-1], None)
            elif kind == b"d":
                pieces.append(body)
            elif kind == b"f":
                pieces.append(b"failed: " + body.rstrip(b"\0"))
        if parsed is not None and not queries:
            queries.append(parsed)
        return ClientRequest(kinds, queries, more, pieces)

    def _bound(self, body: bytes) -> tuple[bytes, Query]:
        """Return the cursor that a statement is bound to, and the statement with its parameters."""
        cursor, name, rest = body.split(b"\0", 2)
        text = self.statements[name]
        types = self._types.get(text, ())
        (count,) = struct.unpack_from("!H", rest)
        formats = struct.unpack_from(f"!{count}H", rest, 2)
        place = 2 + 2 * count
        (count,) = struct.unpack_from("!H", rest, place)
        place += 2
        found: list[Any] = []
        for number in range(count):
            (size,) = struct.unpack_from("!i", rest, place)
            place += 4
            if size < 0:
                found.append(None)
                continue
            value = rest[place : place + size]
            place += size
            binary = formats[number if len(formats) > 1 else 0] if formats else 0
            known = binary and number < len(types)
            found.append(plain(types[number], value) if known else text_of(value))
        return cursor, Query(text, found)
