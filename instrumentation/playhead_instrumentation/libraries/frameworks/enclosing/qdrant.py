"""Hook of Qdrant: a span around each query of a collection, in this process or over the network."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final, cast

from playhead_instrumentation.libraries.frameworks.enclosing.enclosed_call import EnclosedCall
from playhead_instrumentation.libraries.frameworks.enclosing.retrieval import (
    begin_retrieval,
    set_documents,
)
from playhead_instrumentation.libraries.frameworks.operation_span import OperationSpan
from playhead_instrumentation.patching.patches import PATCHES

NAME: Final = "qdrant"

QUERIES: Final = ("query_points", "search")
"""Methods that query a collection. Newer versions have only the first."""


def hook(qdrant_client: ModuleType) -> None:
    """Install the hook: `qdrant_client` has been imported."""
    call = EnclosedCall(_begin_query, _finish_query)
    for client, layer in (("QdrantClient", call.sync_layer), ("AsyncQdrantClient", call.async_layer)):
        owner = getattr(qdrant_client, client, None)
        for method in QUERIES:
            if hasattr(owner, method):
                PATCHES.around(owner, method, layer)


def _begin_query(
    _: Any, collection_name: Any = "", query: Any = None, *__: Any, **___: Any
) -> OperationSpan | None:
    text = query if isinstance(query, str) else getattr(query, "text", None)  # else it is a vector
    return begin_retrieval(NAME, str(collection_name), text)


def _finish_query(operation: OperationSpan, result: Any) -> None:
    points = cast("Sequence[Any]", getattr(result, "points", result))
    set_documents(
        operation, ({"id": one.id, "score": one.score, **(one.payload or {})} for one in points)
    )
