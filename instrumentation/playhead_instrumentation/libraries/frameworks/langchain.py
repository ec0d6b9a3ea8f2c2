"""Hook of LangChain and LangGraph: their callbacks start and end spans.

LangChain calls a registered handler for every run of a chain, a tool or a retriever, with the ids of the
run and of its parent. It says nothing of contexts: callbacks run in the context of the
caller, in which a generator also leaves what it sets, or in that of another task. So a callback does not
change its context. LangChain itself makes a new context for what a run calls, also in threads and tasks,
and puts the run's configuration into it; there the span of the run becomes the current one. A retriever
and a model in a batch have no such context. They get a scope around the call of their method, which ends
what their callback sets.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final

from opentelemetry import context as otel_context

from playhead_instrumentation.libraries.frameworks.operation_span import never_raises
from playhead_instrumentation.libraries.frameworks.scopes import scoped, scoped_async
from playhead_instrumentation.patching.patches import PATCHES, required

NAME: Final = "langchain"

CONFIGURATIONS: Final = (
    "langchain_core.runnables.config",
    "langgraph._internal._runnable",
    "langgraph.utils.runnable",
)
"""Modules with the function that puts the configuration of a run into its new context."""


def hook(_: ModuleType) -> None:
    """Install the hook: `langchain_core` has been imported."""
    PATCHES.when_imported("langchain_core.tracers.context", NAME, _register)
    for module in CONFIGURATIONS:
        PATCHES.when_imported(module, NAME, _patch_contexts)
    PATCHES.when_imported("langchain_core.retrievers", NAME, _patch_retrievers)
    PATCHES.when_imported("langchain_core.language_models.chat_models", NAME, _patch_models)


def _register(tracers: ModuleType) -> None:
    # With its first run LangChain imports this module, and the handler with it: not before.
    from playhead_instrumentation.libraries.frameworks.langchain_runs import HANDLER

    handler = ContextVar[Any]("playhead_langchain_handler", default=HANDLER)
    required(tracers, "register_configure_hook")(handler, inheritable=True)


def _patch_contexts(module: ModuleType) -> None:
    if hasattr(module, "_set_config_context"):  # some versions import it from another module
        PATCHES.around(module, "_set_config_context", _enter)


def _enter(original: Callable[..., Any], config: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Layer of what is called in the new context of a run, which is dropped when the run has ended."""
    before = original(config, *args, **kwargs)
    _attach(config)
    return before


@never_raises
def _attach(config: Any) -> None:
    from playhead_instrumentation.libraries.frameworks.langchain_runs import operation_of

    operation = operation_of(config)
    if operation is not None and not operation.is_entered:
        otel_context.attach(operation.context())


def _patch_retrievers(module: ModuleType) -> None:
    retriever = required(module, "BaseRetriever")
    PATCHES.around_all(retriever, {"invoke": scoped, "ainvoke": scoped_async})


def _patch_models(module: ModuleType) -> None:
    model = required(module, "BaseChatModel")
    PATCHES.around_all(model, {"generate": scoped, "agenerate": scoped_async})
