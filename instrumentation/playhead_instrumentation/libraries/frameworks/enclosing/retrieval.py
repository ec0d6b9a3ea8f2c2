"""The span of a retrieval, for the hooks that enclose one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from playhead_instrumentation.libraries.frameworks.operation_span import OperationSpan
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName


def begin_retrieval(framework: str, source: str, query: Any) -> OperationSpan | None:
    """Start the span. None within the span of a retriever that a framework has: it is one retrieval.

    ``source``: name of the collection or of the retriever. ``query``: text, or None for a vector.
    """
    around = OperationSpan.current()
    if around is not None and around.name.startswith(f"{GenAiOperationName.RETRIEVAL} "):
        return None
    operation = OperationSpan.begin(
        f"{GenAiOperationName.RETRIEVAL} {source}",
        {
            a.GEN_AI_OPERATION_NAME: GenAiOperationName.RETRIEVAL,
            a.GEN_AI_DATA_SOURCE_ID: source,
            a.PLAYHEAD_FRAMEWORK_NAME: framework,
        },
    )
    if operation is not None and query is not None:
        operation.set_content({a.GEN_AI_RETRIEVAL_QUERY_TEXT: query})
    return operation


def set_documents(operation: OperationSpan, documents: Iterable[Mapping[str, Any]]) -> None:
    """Set the documents that the retrieval returned."""
    operation.set_content({a.GEN_AI_RETRIEVAL_DOCUMENTS: list(documents)})
