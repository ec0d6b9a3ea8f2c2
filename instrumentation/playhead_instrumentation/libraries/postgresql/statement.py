"""Describe SQL as a statement: readable JSON without credentials, and attributes of the span."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from playhead_instrumentation.libraries.database.exchange import Statement
from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a

READS: Final = frozenset(
    (
        *("BEGIN", "CLOSE", "DECLARE", "DESCRIBE", "EXPLAIN", "FETCH", "LISTEN", "MOVE", "NOTIFIES"),
        *("RECEIVE", "RELEASE", "RESET", "ROLLBACK", "SAVEPOINT", "SELECT", "SET", "SHOW", "START"),
        *("SYNC", "TABLE", "UNLISTEN", "VALUES"),
    )
)
"""First words of statements that change nothing."""

LONGEST_TEXT: Final = 8192
"""Characters of a statement that a span has; a longer one is on the tape alone."""

_WORD = re.compile(rb"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*([A-Za-z]+)", re.DOTALL)
_NUMBER = re.compile(rb"\b(_django_curs_|__asyncpg_[a-z]+_)[0-9a-f]+(_)")
"""The number in names that a driver or a framework makes up; each process has others: that of a thread
(Django), or a count of all that it has named (asyncpg)."""

_PASSWORD = re.compile(rb"(?i)\bPASSWORD\s+'((?:[^']|'')+)'")


_SETS = re.compile(
    rb"(?is)\s*(SET\s+(?!LOCAL\b|TRANSACTION\b|CONSTRAINTS\b)|RESET\b|(UN)?LISTEN\b|SELECT\s.*\bset_config\s*\()"
)


class Query(NamedTuple):
    """One statement and its parameters."""

    text: bytes
    params: Sequence[Any] | None = None
    """Each as it goes over the wire, in bytes, or what it means, as JSON. None in it: NULL. None: there
    are none."""

    @property
    def operation(self) -> str:
        """Its first word."""
        found = _WORD.match(self.text)
        return found[1].decode().upper() if found else "SQL"

    @property
    def sets(self) -> bool:
        """Whether it sets something for the session."""
        return _SETS.match(self.text) is not None

    def plain(self, redactor: Redactor) -> dict[str, Any]:
        """As JSON has it."""
        for found in _PASSWORD.finditer(self.text):
            redactor.learn(found[1].decode("utf-8", "replace"))
        said: dict[str, Any] = {"query": text_of(_NUMBER.sub(rb"\g<1>0\g<2>", self.text))}
        if self.params:
            said["params"] = [_plain(one) for one in self.params]
        return said


def statement_of(asked: Sequence[Query], redactor: Redactor, **more: Any) -> Statement:
    """Describe statements that go out together. ``more``: further properties of the request."""
    operations = [query.operation for query in asked]
    attributes: dict[str, Any] = {}
    said = [query.plain(redactor) for query in asked]
    if len(asked) == 1:
        body = {**said[0], **more}
        text = redactor.text(str(body["query"])) if redactor.content else ""
        if text and len(text) <= LONGEST_TEXT:
            attributes[a.DB_QUERY_TEXT] = text
    else:
        attributes[a.DB_OPERATION_BATCH_SIZE] = len(asked)
        body = {"pipeline": said, **more}
    operation = operations[0] if len(asked) == 1 else "PIPELINE"
    return Statement(
        operation,
        json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"),
        "read" if READS.issuperset(operations) else "write",
        attributes,
    )


def _plain(value: Any) -> Any:
    on_wire: Any = value
    return text_of(bytes(on_wire)) if isinstance(value, bytes | bytearray | memoryview) else value


def text_of(value: bytes) -> Any:
    """Bytes as JSON: their text, or base64 if they are not text."""
    if b"\0" not in value:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    return {"$type": "bytes", "value": base64.b64encode(value).decode()}
