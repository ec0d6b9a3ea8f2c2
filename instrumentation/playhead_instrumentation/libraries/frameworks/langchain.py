"""Hook of LangChain and LangGraph: their callbacks start and end spans.

LangChain calls a registered handler for every run of a chain, a tool or a retriever, with the ids of the
run and of its parent. It promises nothing about contexts: a callback runs in the context of the caller,
where a change made in a generator would remain, or in that of another task. So a callback does not
change its context. LangChain creates a new context for the calls of a run, also in threads and tasks,
and puts the run's configuration into it; the span of the run becomes the current one there. A retriever
and a model in a batch have no such context. A scope around their method ends what their callback sets.
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


def _enter(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Layer of the function that LangChain calls in the new context of a run."""
    before = original(*args, **kwargs)
    _attach(*args, **kwargs)
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
