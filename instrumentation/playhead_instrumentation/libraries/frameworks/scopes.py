"""Scopes in which a callback may change the context: it ends what the callback sets.

A callback cannot restore a context itself: the callback at the end may run in another context.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from opentelemetry import context as otel_context

from playhead_instrumentation.libraries.frameworks.operation_span import OperationSpan

_SCOPE: Final = otel_context.create_key("playhead-framework-scope")
"""Whether the context may be changed until the end of the scope."""


def enter_in_scope(operation: OperationSpan) -> None:
    """Make the span of ``operation`` the current one until the end of the scope, if there is one."""
    if otel_context.get_value(_SCOPE) and not operation.is_entered:
        otel_context.attach(otel_context.set_value(_SCOPE, False, operation.context()))


def scoped(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Layer of a function that calls callbacks: a scope around it."""
    outer = otel_context.attach(otel_context.set_value(_SCOPE, True))
    try:
        return original(*args, **kwargs)
    finally:
        otel_context.detach(outer)


async def scoped_async(original: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any) -> Any:
    """As `scoped`, for a coroutine function."""
    outer = otel_context.attach(otel_context.set_value(_SCOPE, True))
    try:
        return await original(*args, **kwargs)
    finally:
        otel_context.detach(outer)
