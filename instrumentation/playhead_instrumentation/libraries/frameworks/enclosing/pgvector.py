"""Hook of pgvector: a span around each query of psycopg that sorts by a distance of vectors.

The operators of pgvector mark such a query, whether or not the program has the Python package of that
name. The documents are the rows, which the cursor has when the query returns; a cursor on the server has
none yet.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.frameworks.enclosing.enclosed_call import EnclosedCall
from playhead_instrumentation.libraries.frameworks.enclosing.vector_stores import begin_retrieval
from playhead_instrumentation.libraries.frameworks.operation_span import OperationSpan
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a

NAME: Final = "pgvector"

OPERATORS: Final = ("<->", "<=>", "<#>", "<+>")
"""Distances: Euclidean, cosine, inner product, taxicab."""

MOST_ROWS: Final = 100
"""Rows that become documents."""

_TABLE: Final = re.compile(r"\bfrom\s+([\w.\"]{1,200})", re.IGNORECASE)
_LIMIT: Final = re.compile(r"\blimit\s+(\d{1,9}|%\(\w+\)s|%s)", re.IGNORECASE)


def hook(_: ModuleType) -> None:
    """Install the hook: `psycopg` has been imported."""
    PATCHES.when_imported("psycopg.cursor", NAME, _patch_cursor)
    PATCHES.when_imported("psycopg.cursor_async", NAME, _patch_async_cursor)


def _patch_cursor(module: ModuleType) -> None:
    PATCHES.around(required(module, "Cursor"), "execute", EnclosedCall(_begin, _finish).sync_layer)


def _patch_async_cursor(module: ModuleType) -> None:
    PATCHES.around(required(module, "AsyncCursor"), "execute", EnclosedCall(_begin, _finish).async_layer)


def _begin(_: Any, query: Any, params: Any = None, **__: Any) -> OperationSpan | None:
    text = query.decode("utf-8", "replace") if isinstance(query, bytes) else query
    if not isinstance(text, str) or not any(one in text for one in OPERATORS):
        return None
    table = _TABLE.search(text)
    source = "" if table is None else table[1].replace('"', "")
    return begin_retrieval(NAME, source or NAME, _top_k(text, params), text)


def _top_k(query: str, params: Any) -> int | None:
    """Return the limit of a query, also if it is a parameter."""
    limit = _LIMIT.search(query)
    if limit is None:
        return None
    if limit[1].isdecimal():
        return int(limit[1])
    if isinstance(params, dict):
        value: Any = params.get(limit[1][2:-2])  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    else:
        value = list(params)[query[: limit.start(1)].count("%s")]
    return value if isinstance(value, int) else None


def _finish(operation: OperationSpan, cursor: Any) -> None:
    result = cursor.pgresult
    if result is None:
        return
    names = [result.fname(column).decode("utf-8", "replace") for column in range(result.nfields)]
    documents = [
        {name: _text(result.get_value(row, column)) for column, name in enumerate(names)}
        for row in range(min(result.ntuples, MOST_ROWS))
    ]
    operation.set_content({a.GEN_AI_RETRIEVAL_DOCUMENTS: documents})


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")
