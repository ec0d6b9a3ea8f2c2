"""Hooks of Chroma and Qdrant: a span around each search, with the documents that it finds.

The span encloses what the search does: the embedding of a text, and the requests to a server. A search
that a framework's retriever makes has none: the retriever has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.frameworks.enclosing.enclosed_call import EnclosedCall
from playhead_instrumentation.libraries.frameworks.operation_span import OperationSpan
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

CHROMA: Final = "chromadb"
QDRANT: Final = "qdrant-client"

DEFAULT_TOP_K: Final = 10
"""Number of documents that both clients ask for unless the program says another."""


def hook_chroma(_: ModuleType) -> None:
    """Install the hook: `chromadb` has been imported."""
    PATCHES.when_imported("chromadb.api.models.Collection", CHROMA, _patch_collection)
    PATCHES.when_imported("chromadb.api.models.AsyncCollection", CHROMA, _patch_async_collection)


def hook_qdrant(_: ModuleType) -> None:
    """Install the hook: `qdrant_client` has been imported."""
    PATCHES.when_imported("qdrant_client.qdrant_client", QDRANT, _patch_client)
    PATCHES.when_imported("qdrant_client.async_qdrant_client", QDRANT, _patch_async_client)


def _patch_collection(module: ModuleType) -> None:
    query = EnclosedCall(_begin_query, _finish_query)
    PATCHES.around(required(module, "Collection"), "query", query.sync_layer)


def _patch_async_collection(module: ModuleType) -> None:
    query = EnclosedCall(_begin_query, _finish_query)
    PATCHES.around(required(module, "AsyncCollection"), "query", query.async_layer)


def _patch_client(module: ModuleType) -> None:
    query = EnclosedCall(_begin_points, _finish_points)
    PATCHES.around(required(module, "QdrantClient"), "query_points", query.sync_layer)


def _patch_async_client(module: ModuleType) -> None:
    query = EnclosedCall(_begin_points, _finish_points)
    PATCHES.around(required(module, "AsyncQdrantClient"), "query_points", query.async_layer)


def begin_retrieval(library: str, source: str, top_k: Any, query: str) -> OperationSpan | None:
    """Start the span of a search; None if a retriever that is running has one already."""
    around = OperationSpan.current()
    if around is not None and around.name.startswith(GenAiOperationName.RETRIEVAL):
        return None
    attributes: dict[str, Any] = {
        a.GEN_AI_OPERATION_NAME: GenAiOperationName.RETRIEVAL,
        a.GEN_AI_DATA_SOURCE_ID: source,
        a.PLAYHEAD_FRAMEWORK_NAME: library,
    }
    if isinstance(top_k, int):
        attributes[a.GEN_AI_RETRIEVAL_TOP_K] = top_k
    operation = OperationSpan.begin(f"{GenAiOperationName.RETRIEVAL} {source}", attributes)
    if operation is not None and query:
        operation.set_content({a.GEN_AI_RETRIEVAL_QUERY_TEXT: query})
    return operation


def _begin_query(
    collection: Any,
    query_embeddings: Any = None,
    query_texts: Any = None,
    query_images: Any = None,
    query_uris: Any = None,
    ids: Any = None,
    n_results: int = DEFAULT_TOP_K,
    *_: Any,
    **__: Any,
) -> OperationSpan | None:
    texts: Sequence[str] = [query_texts] if isinstance(query_texts, str) else query_texts or ()
    return begin_retrieval(CHROMA, str(collection.name), n_results, "\n".join(texts))


def _finish_query(operation: OperationSpan, found: Mapping[str, Any]) -> None:
    """Chroma returns a list for each query, and in it a list for each field."""
    documents: list[dict[str, Any]] = []
    for place, ids in enumerate(found["ids"]):
        fields = {"metadata": "metadatas", "content": "documents", "distance": "distances"}
        kept = {name: found.get(theirs) for name, theirs in fields.items()}
        columns = {name: values[place] for name, values in kept.items() if values is not None}
        for row, id in enumerate(ids):
            one = {name: values[row] for name, values in columns.items()}
            documents.append({**(one.pop("metadata", None) or {}), "id": id, **one})
    operation.set_content({a.GEN_AI_RETRIEVAL_DOCUMENTS: documents})


def _begin_points(
    _: Any,
    collection_name: str,
    query: Any = None,
    using: Any = None,
    prefetch: Any = None,
    query_filter: Any = None,
    search_params: Any = None,
    limit: int = DEFAULT_TOP_K,
    *__: Any,
    **___: Any,
) -> OperationSpan | None:
    text = query if isinstance(query, str) else getattr(query, "text", "")  # else it is a vector
    return begin_retrieval(QDRANT, collection_name, limit, text if isinstance(text, str) else "")


def _finish_points(operation: OperationSpan, found: Any) -> None:
    documents: list[dict[str, Any]] = [
        {**(point.payload or {}), "id": str(point.id), "score": float(point.score)}
        for point in found.points
    ]
    operation.set_content({a.GEN_AI_RETRIEVAL_DOCUMENTS: documents})
