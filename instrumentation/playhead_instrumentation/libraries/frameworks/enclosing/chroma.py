"""Hook of Chroma: a span around each query of a collection."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.frameworks.enclosing.enclosed_call import EnclosedCall
from playhead_instrumentation.libraries.frameworks.enclosing.retrieval import (
    begin_retrieval,
    set_documents,
)
from playhead_instrumentation.libraries.frameworks.operation_span import OperationSpan
from playhead_instrumentation.patching.patches import PATCHES, required

NAME: Final = "chroma"


def hook(_: ModuleType) -> None:
    """Install the hook: `chromadb` has been imported."""
    PATCHES.when_imported("chromadb.api.models.Collection", NAME, _patch)
    PATCHES.when_imported("chromadb.api.models.AsyncCollection", NAME, _patch_async)


def _patch(module: ModuleType) -> None:
    query = EnclosedCall(_begin_query, _finish_query)
    PATCHES.around(required(module, "Collection"), "query", query.sync_layer)


def _patch_async(module: ModuleType) -> None:
    query = EnclosedCall(_begin_query, _finish_query)
    PATCHES.around(required(module, "AsyncCollection"), "query", query.async_layer)


def _begin_query(
    collection: Any, query_embeddings: Any = None, query_texts: Any = None, *_: Any, **__: Any
) -> OperationSpan | None:
    texts = [query_texts] if isinstance(query_texts, str) else list(query_texts or ())
    query = texts[0] if len(texts) == 1 else texts or None
    return begin_retrieval(NAME, str(collection.name), query)


def _finish_query(operation: OperationSpan, result: Any) -> None:
    """Set the documents of all queries: Chroma returns a list for each query and kind of content."""
    found: list[dict[str, Any]] = []
    for query, ids in enumerate(result["ids"]):
        for index, id in enumerate(ids):
            document: dict[str, Any] = {"id": id}
            for name, kind in (("content", "documents"), ("distance", "distances")):
                if result.get(kind):
                    document[name] = result[kind][query][index]
            if result.get("metadatas"):
                document.update(result["metadatas"][query][index] or {})
            found.append(document)
    set_documents(operation, found)
