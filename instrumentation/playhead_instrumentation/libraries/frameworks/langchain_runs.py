"""The runs of LangChain and LangGraph, and which of them have spans.

=============================================  ==============================================
a run                                          its span
=============================================  ==============================================
of a chain that no other run started           ``invoke_workflow NAME``, ``invoke_agent NAME``
of a graph, also within a node                 the same
of a node                                      the node's name, as a step
of a tool                                      ``execute_tool NAME``
of a retriever                                 ``retrieval NAME``
of another chain, of a prompt, of a parser     none: what it calls belongs to the run around it
of a model                                     none: the SDK below has one
=============================================  ==============================================

A graph within a node looks like any other chain until its first node begins. Its span is started then,
with the time at which the graph began.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from uuid import UUID

from langchain_core.callbacks.base import BaseCallbackHandler

from playhead_instrumentation.libraries.frameworks.operation_span import (
    UNKNOWN_ERROR,
    OperationSpan,
    never_raises,
    tool_attributes,
)
from playhead_instrumentation.libraries.frameworks.scopes import enter_in_scope
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NODE_TAG: Final = "graph:step:"
"""Beginning of a tag that LangGraph gives to the run of a node; the number of the step follows."""
HIDDEN_TAG: Final = "langsmith:hidden"
"""Tag of runs that LangGraph does not show."""
AGENTS: Final = ("langchain_create_agent",)
"""Values of the metadata ``ls_integration`` that mark the graph of an agent."""


class ChainRun:
    """A run of LangChain that has begun."""

    def __init__(self, name: str, parent: ChainRun | None, metadata: Mapping[str, Any] | None) -> None:
        self.name: Final = name
        self.metadata: Final = metadata or {}
        self.operation: OperationSpan | None = None
        """Its span; None if it has none."""
        self._parent: Final = parent
        self._began_ns: Final = time.time_ns()

    @property
    def around(self) -> OperationSpan | None:
        """The operation that contains the calls of this run."""
        run: ChainRun | None = self
        while run is not None and run.operation is None:
            run = run._parent
        return None if run is None else run.operation

    def begin(self, name: str, attributes: Mapping[str, Any]) -> OperationSpan | None:
        """Start the span of this run."""
        known = {
            a.PLAYHEAD_FRAMEWORK_NAME: _framework(self.metadata),
            a.GEN_AI_CONVERSATION_ID: _text(self.metadata.get("thread_id")),
            **attributes,
        }
        around = None if self._parent is None else self._parent.around
        self.operation = OperationSpan.begin(
            name, {name: value for name, value in known.items() if value}, around, self._began_ns
        )
        return self.operation

    def begin_graph(self) -> None:
        """Start the span of a graph, or of a chain that no other run started."""
        if self.operation is not None:
            return
        is_agent = self.metadata.get("ls_integration") in AGENTS or self.name == "AgentExecutor"
        operation = GenAiOperationName.INVOKE_AGENT if is_agent else GenAiOperationName.INVOKE_WORKFLOW
        self.begin(
            f"{operation} {self.name}".rstrip(),
            {
                a.GEN_AI_OPERATION_NAME: operation,
                a.GEN_AI_AGENT_NAME: self.name,
                a.PLAYHEAD_FRAMEWORK_CHECKPOINT_ID: _text(self.metadata.get("checkpoint_id")),
            },
        )

    def begin_node(self, step: str) -> None:
        """Start the span of a node. ``step``: the number of the step in which it runs."""
        if self._parent is not None:
            self._parent.begin_graph()
        namespace = _text(self.metadata.get("langgraph_checkpoint_ns"))
        attributes: dict[str, Any] = {
            a.PLAYHEAD_STEP_NAME: self.name,
            a.PLAYHEAD_FRAMEWORK_CHECKPOINT_NAMESPACE: namespace,
        }
        if step.isdecimal():
            attributes[a.PLAYHEAD_FRAMEWORK_STEP] = int(step)
        self.begin(self.name, attributes)


_runs: Final[dict[UUID, ChainRun]] = {}
"""Runs that have not ended, by their ids."""


def operation_of(config: Any) -> OperationSpan | None:
    """Return the operation around a call with ``config``; None if it is not known."""
    run = _runs.get(getattr(config.get("callbacks"), "parent_run_id", None))  # pyright: ignore[reportArgumentType]
    return None if run is None else run.around


class Handler(BaseCallbackHandler):
    """Handler of LangChain's callbacks. It has no state, so that a program may copy it."""

    run_inline = True  # in the task of the run itself, in which the context of a retriever is set

    @property
    def ignore_llm(self) -> bool:
        """The SDK below has a span for a model call."""
        return True

    @property
    def ignore_retry(self) -> bool:
        """Retries are attempts of the SDK below."""
        return True

    @property
    def ignore_custom_event(self) -> bool:
        """Events of the program have no spans."""
        return True

    @never_raises
    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """A chain, a graph or a node begins."""
        run = _begun(run_id, parent_run_id, _name(serialized, more), metadata)
        if run is None or HIDDEN_TAG in (tags or ()):
            return
        node = next((tag for tag in tags or () if tag.startswith(NODE_TAG)), None)
        if node is not None:
            run.begin_node(node.removeprefix(NODE_TAG))
        elif parent_run_id not in _runs:
            run.begin_graph()

    @never_raises
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """A tool begins."""
        name = _name(serialized, more)
        run = _begun(run_id, parent_run_id, name, metadata)
        if run is None:
            return
        operation = run.begin(
            f"{GenAiOperationName.EXECUTE_TOOL} {name}",
            {
                **tool_attributes(_framework(run.metadata), name),
                a.GEN_AI_TOOL_DESCRIPTION: _text((serialized or {}).get("description")),
                a.GEN_AI_TOOL_CALL_ID: _text(more.get("tool_call_id")),
            },
        )
        if operation is not None:
            arguments = input_str if inputs is None else inputs
            operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: arguments})

    @never_raises
    def on_retriever_start(
        self,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """A retriever begins."""
        name = _name(serialized, more)
        run = _begun(run_id, parent_run_id, name, metadata)
        if run is None:
            return
        operation = run.begin(
            f"{GenAiOperationName.RETRIEVAL} {name}",
            {
                a.GEN_AI_OPERATION_NAME: GenAiOperationName.RETRIEVAL,
                a.GEN_AI_DATA_SOURCE_ID: name,
            },
        )
        if operation is not None:
            operation.set_content({a.GEN_AI_RETRIEVAL_QUERY_TEXT: query})
            enter_in_scope(operation)

    @never_raises
    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        """A model is called; the SDK below makes the span."""
        run = None if parent_run_id is None else _runs.get(parent_run_id)
        around = None if run is None else run.around
        if around is not None:
            enter_in_scope(around)

    @never_raises
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """A chain, a graph or a node has returned."""
        _end(run_id)

    @never_raises
    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """A tool has returned."""
        operation = _operation(run_id)
        if operation is not None:
            result = getattr(output, "content", output)
            operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: result})
            if getattr(output, "status", None) == "error":
                operation.fail(UNKNOWN_ERROR, str(result))
        _end(run_id)

    @never_raises
    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **_: Any) -> None:
        """A retriever has returned."""
        operation = _operation(run_id)
        if operation is not None:
            texts = [
                {"id": document.id, "content": document.page_content, **document.metadata}
                for document in documents
            ]
            operation.set_content({a.GEN_AI_RETRIEVAL_DOCUMENTS: texts})
        _end(run_id)

    @never_raises
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A chain, a graph or a node has raised ``error``."""
        _end(run_id, error)

    @never_raises
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A tool has raised ``error``."""
        _end(run_id, error)

    @never_raises
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A retriever has raised ``error``."""
        _end(run_id, error)


HANDLER: Final = Handler()


def _begun(
    id: UUID, parent: UUID | None, name: str, metadata: Mapping[str, Any] | None
) -> ChainRun | None:
    """Return a run that begins; None if it is known already, from a copy of the handler."""
    if id in _runs:
        return None
    run = _runs[id] = ChainRun(name, None if parent is None else _runs.get(parent), metadata)
    return run


def _operation(id: UUID) -> OperationSpan | None:
    run = _runs.get(id)
    return None if run is None else run.operation


def _end(id: UUID, error: BaseException | None = None) -> None:
    run = _runs.pop(id, None)
    if run is None or run.operation is None:
        return
    if error is not None and _is_control_flow(error):
        _set_interrupts(run.operation, error)
        error = None
    run.operation.end(error)


def _is_control_flow(error: BaseException) -> bool:
    """Whether LangGraph raises ``error`` to pause a graph or to go on in another one."""
    return any(
        one.__name__ == "GraphBubbleUp" and one.__module__ == "langgraph.errors"
        for one in type(error).__mro__
    )


def _set_interrupts(operation: OperationSpan, error: BaseException) -> None:
    interrupts: Any = error.args[0] if error.args else ()
    if not isinstance(interrupts, tuple | list):
        return
    found = [one for one in cast("Sequence[Any]", interrupts) if hasattr(one, "value")]
    if found:
        ids = [str(getattr(one, "id", "")) for one in found]
        operation.set({a.PLAYHEAD_FRAMEWORK_INTERRUPT_IDS: ids})
        values = [one.value for one in found]
        operation.set_content({a.PLAYHEAD_FRAMEWORK_INTERRUPT_VALUES: values})


def _framework(metadata: Mapping[str, Any]) -> str:
    return "langgraph" if "langgraph_node" in metadata or "ls_integration" in metadata else "langchain"


def _name(serialized: Mapping[str, Any] | None, more: Mapping[str, Any]) -> str:
    """Return the name of a run: its own, else that of what it runs."""
    known = serialized or {}
    path = known.get("id")
    return str(more.get("name") or known.get("name") or (path[-1] if path else "") or "")


def _text(value: Any) -> str:
    return "" if value is None else str(value)
