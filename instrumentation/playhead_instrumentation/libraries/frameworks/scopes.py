"""Contexts that callbacks of a framework change, and what restores them.

A callback cannot detach a token: the callback at the end may run in another context. A scope around
the framework's function ends what a callback has set. Where both callbacks run in the function's own
context, an `Entry` does: it restores the outer context where the operation is still the current one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final, TypeVar

from opentelemetry import context as otel_context

from playhead_instrumentation.libraries.frameworks.operation_span import OperationSpan

T = TypeVar("T")

_SCOPE: Final = otel_context.create_key("playhead-framework-scope")
"""Whether the context may be changed until the end of the scope."""


class Entry:
    """An operation that a callback has made the current one, until another callback ends it."""

    def __init__(self, operation: OperationSpan) -> None:
        self._operation: Final = operation
        self._outer: Final = otel_context.get_current()
        otel_context.attach(operation.context())

    def leave(self) -> None:
        """Restore the context before the operation. Does nothing in a context without it."""
        if self._operation.is_entered:
            otel_context.attach(self._outer)


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


async def streamed_within(
    operation: OperationSpan, stream: AsyncGenerator[T], on_item: Callable[[T], object]
) -> AsyncGenerator[T]:
    """Yield the items of ``stream``, which runs inside of ``operation`` and ends it.

    The operation is the current one only while the stream runs, not while the program has an item.
    ``on_item`` is called with each item inside of the operation. It must not raise.
    """
    failure: BaseException | None = None
    try:
        while True:
            outer = otel_context.attach(operation.context())
            try:
                item = await anext(stream)
                on_item(item)
            except StopAsyncIteration:
                return
            finally:
                otel_context.detach(outer)
            yield item
    except BaseException as error:
        failure = error
        raise
    finally:
        operation.end(failure)
        await stream.aclose()
