"""Layers of a framework's functions: the span of an operation around the call.

The span is the current one while the function runs. A generator that the function returns belongs to
the call: its span ends with the generator, and is the current one only while an item is produced.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Final

from opentelemetry import context as otel_context

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.frameworks.operation_span import OperationSpan

log = Log(__name__)

Begin = Callable[..., OperationSpan | None]
"""Gets the arguments of the call. Starts the span; None if the call has none. May raise."""
Finish = Callable[[OperationSpan, Any], object]
"""Gets the span and the result of the call. May raise."""


class EnclosedCall:
    """Layers that enclose the calls of one function: for functions, and for coroutine functions."""

    def __init__(self, begin: Begin, finish: Finish | None = None) -> None:
        self._begin: Final = begin
        self._finish: Final = finish

    def sync_layer(self, original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Layer of a function, or of a generator function."""
        operation = self._begun(*args, **kwargs)
        if operation is None:
            return original(*args, **kwargs)
        token = otel_context.attach(operation.context())
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            operation.end(error)
            raise
        finally:
            otel_context.detach(token)
        if inspect.isgenerator(result):
            return self._items(operation, result)
        self._finished(operation, result)
        return result

    async def async_layer(
        self, original: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Layer of a coroutine function."""
        operation = self._begun(*args, **kwargs)
        if operation is None:
            return await original(*args, **kwargs)
        token = otel_context.attach(operation.context())
        try:
            result = await original(*args, **kwargs)
        except BaseException as error:
            operation.end(error)
            raise
        finally:
            otel_context.detach(token)
        self._finished(operation, result)
        return result

    def _begun(self, *args: Any, **kwargs: Any) -> OperationSpan | None:
        try:
            return self._begin(*args, **kwargs)
        except Exception:
            log.debug("playhead failed in a hook", exc_info=True)
            return None

    def _finished(self, operation: OperationSpan, result: Any) -> None:
        try:
            if self._finish is not None:
                self._finish(operation, result)
        except Exception:
            log.debug("playhead failed in a hook", exc_info=True)
        finally:
            operation.end()

    def _items(
        self, operation: OperationSpan, items: Generator[Any, Any, Any]
    ) -> Generator[Any, Any, Any]:
        """Yield the items of a generator within the operation."""
        result = None
        advance: Callable[[], Any] = partial(items.send, None)
        try:
            while True:
                token = otel_context.attach(operation.context())
                try:
                    item = advance()
                except StopIteration as end:
                    result = end.value
                    break
                finally:
                    otel_context.detach(token)
                try:
                    advance = partial(items.send, (yield item))
                except GeneratorExit:
                    raise
                except BaseException as error:
                    advance = partial(items.throw, error)
        except BaseException as error:
            operation.end(error)
            items.close()
            raise
        self._finished(operation, result)
        return result
