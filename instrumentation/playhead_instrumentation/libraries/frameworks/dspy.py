"""Hook of DSPy: a handler of its callbacks, next to those of the program.

DSPy calls its handlers before and after each module, tool, retriever, evaluation and optimizer, in the
context of the call. Worker threads of DSPy have an empty context, but know the call that started them.

=========================================  ====================================
a call                                     its span
=========================================  ====================================
of a module that reasons with tools        ``invoke_agent NAME``
of a module, an optimizer, an evaluation
that no other call contains                ``invoke_workflow NAME``
of a module, by a module of the program    the module's name there, as a step
of a tool                                  ``execute_tool NAME``
of a retriever                             ``retrieval NAME``
of another module                          none: it belongs to the call around
of a model                                 none: the SDK below has one
=========================================  ====================================
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.frameworks.operation_span import (
    OperationSpan,
    never_raises,
    tool_attributes,
)
from playhead_instrumentation.libraries.frameworks.scopes import Entry
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME: Final = "dspy"

AGENTS: Final = ("ReAct", "ReActV2", "RLM", "Avatar")
"""Modules of DSPy that call tools until they have an answer, and their subclasses."""

NO_NAMES: Final = ("Signature", "StringSignature")
"""Names of signatures that the program did not name."""


def hook(_: ModuleType) -> None:
    """Install the hook: `dspy` has been imported."""
    PATCHES.when_imported("dspy.dsp.utils.settings", NAME, _patch_settings)


def _patch_settings(module: ModuleType) -> None:
    PATCHES.around(required(module, "Settings"), "get", _get)


def _get(original: Any, settings: Any, key: str, default: Any = None) -> Any:
    """Layer of the function by which each call of DSPy finds its handlers, and the program does not."""
    found = original(settings, key, default)
    return [*found, HANDLER] if key == "callbacks" and isinstance(found, list) else found


class _Call:
    """A call of DSPy that has begun."""

    def __init__(self, module: Any, parent: _Call | None) -> None:
        self.module: Final = module
        self.parent: Final = parent
        self.operation: OperationSpan | None = None
        """Its own; None if it has none."""
        self.entry: Entry | None = None

    @property
    def around(self) -> OperationSpan | None:
        """The operation that contains what it calls."""
        call: _Call | None = self
        while call is not None and call.operation is None:
            call = call.parent
        return None if call is None else call.operation


class Handler:
    """Handler of DSPy's callbacks. Its methods never raise."""

    def __init__(self) -> None:
        self._calls: Final[dict[str, _Call]] = {}
        """Calls that have not ended, by their ids."""

    @never_raises
    def on_module_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """A module is called, or a retriever."""
        call = self._begun(call_id, instance)
        if _is(instance, "Retrieve"):
            call.operation = _retrieval(instance, inputs, call.around)
        elif _is(instance, *AGENTS):
            call.operation = _frame(GenAiOperationName.INVOKE_AGENT, _name(call), call.around)
        elif call.around is None and OperationSpan.current() is None:
            call.operation = _frame(GenAiOperationName.INVOKE_WORKFLOW, _name(call), None)
        elif call.parent is not None and _is_of_program(call.parent.module):
            name = _name(call)
            attributes = {a.PLAYHEAD_STEP_NAME: name, a.PLAYHEAD_FRAMEWORK_NAME: NAME}
            call.operation = OperationSpan.begin(name, attributes, call.around)
        _enter(call)

    @never_raises
    def on_tool_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """A tool is called."""
        call = self._begun(call_id, instance)
        name = str(instance.name)
        attributes = tool_attributes(NAME, name)
        if getattr(instance, "desc", None):
            attributes[a.GEN_AI_TOOL_DESCRIPTION] = str(instance.desc)
        call.operation = OperationSpan.begin(
            f"{GenAiOperationName.EXECUTE_TOOL} {name}", attributes, call.around
        )
        if call.operation is not None:
            call.operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: inputs.get("kwargs", inputs)})
        _enter(call)

    @never_raises
    def on_evaluate_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """An evaluation or an optimizer is called: it calls a module many times."""
        call = self._begun(call_id, instance)
        call.operation = _frame(GenAiOperationName.INVOKE_WORKFLOW, type(instance).__name__, call.around)
        _enter(call)

    on_compile_start = on_evaluate_start

    @never_raises
    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """A call has returned, or has raised ``exception``."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        if call.entry is not None:
            call.entry.leave()
        if call.operation is None:
            return
        try:
            if exception is None:
                _set_result(call.operation, outputs)
        finally:
            call.operation.end(exception)

    on_tool_end = on_evaluate_end = on_compile_end = on_module_end

    def __getattr__(self, name: str) -> Any:
        """Return a handler that does nothing, for models, adapters, and what later versions call."""
        if not name.startswith("on_"):
            raise AttributeError(name)
        return _ignored

    def _begun(self, id: str, module: Any) -> _Call:
        around = sys.modules["dspy.utils.callback"].ACTIVE_CALL_ID.get()
        call = self._calls[id] = _Call(module, self._calls.get(around))
        return call


HANDLER: Final = Handler()


def _ignored(**_: Any) -> None: ...


def _enter(call: _Call) -> None:
    """Make the operation of a call the current one; in a worker thread also that around it."""
    operation = call.around
    if operation is not None and not operation.is_entered:
        call.entry = Entry(operation)


def _frame(operation: str, name: str, around: OperationSpan | None) -> OperationSpan | None:
    return OperationSpan.begin(
        f"{operation} {name}",
        {
            a.GEN_AI_OPERATION_NAME: operation,
            a.GEN_AI_AGENT_NAME: name,
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
        },
        around,
    )


def _retrieval(
    retriever: Any, inputs: Mapping[str, Any], around: OperationSpan | None
) -> OperationSpan | None:
    model = getattr(sys.modules["dspy"].settings, "rm", None)
    name = type(retriever if model is None else model).__name__
    operation = OperationSpan.begin(
        f"{GenAiOperationName.RETRIEVAL} {name}",
        {
            a.GEN_AI_OPERATION_NAME: GenAiOperationName.RETRIEVAL,
            a.GEN_AI_DATA_SOURCE_ID: name,
            a.GEN_AI_RETRIEVAL_TOP_K: int(inputs.get("kwargs", {}).get("k") or retriever.k),
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
        },
        around,
    )
    if operation is not None:
        query = (*inputs.get("args", ()), *inputs.get("kwargs", {}).values())[:1]
        operation.set_content({a.GEN_AI_RETRIEVAL_QUERY_TEXT: str(*query)})
    return operation


def _set_result(operation: OperationSpan, outputs: Any) -> None:
    if operation.tool:
        operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: outputs})
    elif operation.name.startswith(GenAiOperationName.RETRIEVAL):
        documents = [{"content": str(passage)} for passage in outputs.passages]
        operation.set_content({a.GEN_AI_RETRIEVAL_DOCUMENTS: documents})


def _name(call: _Call) -> str:
    """Return the name of a module: of the attribute of its caller, of its signature, of its class."""
    caller = None if call.parent is None else call.parent.module
    known: Mapping[str, Any] = getattr(caller, "__dict__", dict[str, Any]())
    attribute = next((name for name, value in known.items() if value is call.module), "")
    signature = getattr(getattr(call.module, "signature", None), "__name__", "")
    if signature in NO_NAMES or _is_of_program(call.module):
        signature = ""
    return attribute or signature or type(call.module).__name__


def _is(instance: Any, *bases: str) -> bool:
    """Whether ``instance`` has a base class of DSPy with one of these names."""
    return any(
        one.__name__ in bases and one.__module__.partition(".")[0] == NAME
        for one in type(instance).__mro__
    )


def _is_of_program(instance: Any) -> bool:
    return type(instance).__module__.partition(".")[0] != NAME
