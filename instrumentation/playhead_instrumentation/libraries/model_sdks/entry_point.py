"""Start and end the span of a model call at the SDK method that every call goes through.

Retries happen inside that method, so they belong to one call. The caller waits for little: a span starts
on the way in and is handed to a worker on the way out.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager, closing, contextmanager
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from opentelemetry import context as otel_context

from playhead_core.process.own_messages import Log
from playhead_genai.model_providers import provider_at
from playhead_instrumentation.tracing.attempts import current_call
from playhead_instrumentation.tracing.calls import LogicalCall, current_calls
from playhead_semconv.values import GenAiProviderName as Provider

log = Log(__name__)

_NOTHING: Final[Any] = object()


BY_CLASS = (
    ("Azure", Provider.AZURE_AI_OPENAI),
    ("Bedrock", Provider.AWS_BEDROCK),
    ("Vertex", Provider.GCP_VERTEX_AI),
)
"""Part of the client's class name → provider."""

DEFAULT_PORTS = {"http": 80, "https": 443}


class ModelEndpoint(msgspec.Struct, frozen=True):
    """Provider, host and port of a call."""

    provider: str
    """Empty if neither client nor host identifies it: a gateway or a local server."""
    address: str
    port: int


class ModelEndpoints:
    """Endpoints by client object; looked up again when a client's base URL has changed."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[Any, tuple[Any, ModelEndpoint]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, client: Any, url: str) -> ModelEndpoint:
        """Return where ``client`` sends a request for ``url``, which may be relative to its base URL."""
        if url.startswith(("http://", "https://")):
            return endpoint(url, type(client).__name__)
        base = client.base_url
        known = self._known.get(client)
        if known is not None and known[0] is base:
            return known[1]
        found = endpoint(str(base), type(client).__name__)
        self._known[client] = (base, found)
        return found


@lru_cache(256)
def endpoint(url: str, client_class: str) -> ModelEndpoint:
    """Return provider, host and port of ``url``."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    return ModelEndpoint(provider_of(host, client_class), host, port)


def provider_of(host: str, client_class: str) -> str:
    """Return the provider that answers at ``host``; empty if unknown."""
    for part, provider in BY_CLASS:
        if part in client_class:
            return provider
    return provider_at(host)


class ModelCall(msgspec.Struct, frozen=True):
    """A model call, as far as it is known before its request goes out."""

    operation: str
    """``gen_ai.operation.name``."""
    wire: str
    """Dialect of its bodies, as `playhead_genai.providers` names it; empty: its request tells."""
    model: str
    """Empty if the call does not say."""
    endpoint: ModelEndpoint


class EntryPoint:
    """Starts and ends the logical calls of one method.

    Each method is a layer of `Patches.around`, for one kind of function.
    """

    def __init__(self, describe: Callable[..., ModelCall | None]) -> None:
        """``describe`` is called with the arguments of the patched function; None: it has no span."""
        self._describe = describe

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LogicalCall | None:
        """Begin the call with these arguments; None if it has no span. Never raises.

        A call inside another one is an attempt of the outer call: the client below a gateway, or the
        same function in a retry.
        """
        around = current_call.get()
        if isinstance(around, LogicalCall) and around.left_ns is None:
            return None
        try:
            model_call, calls = self._describe(*args, **kwargs), current_calls()
            if model_call is None or calls is None:
                return None
            return calls.begin(
                model_call.operation, model_call.wire, model_call.model, model_call.endpoint
            )
        except Exception:
            log.debug("playhead could not begin a call", exc_info=True)
            return None

    def answered(self, call: LogicalCall, answer: Any) -> None:
        """Note that the caller is about to get ``answer``."""
        call.returned()

    def request(self, request: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call ``request`` with a span around it."""
        return self.within(self.begin(args, kwargs), request, *args, **kwargs)

    async def request_async(
        self, request: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any
    ) -> Any:
        """As `request`, for a coroutine function."""
        return await self.within_async(self.begin(args, kwargs), request, *args, **kwargs)

    def parts(self, parts: Generator[Any], /, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield ``parts`` of a generator that sends its request at the first step."""
        with closing(parts):
            first = self.within(self.begin(args, kwargs), next, parts, _NOTHING)
            if first is not _NOTHING:
                yield first
                yield from parts

    async def parts_async(
        self, parts: AsyncGenerator[Any], /, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """As `parts`, for an asynchronous generator."""
        async with aclosing(parts):
            first = await self.within_async(self.begin(args, kwargs), anext, parts, _NOTHING)
            if first is not _NOTHING:
                yield first
                async for part in parts:
                    yield part

    @contextmanager
    def context(self, request: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Generator[Any]:
        """As `request`, for a context manager that sends its request when it is entered."""
        with ExitStack() as stack:
            call = self.begin(args, kwargs)
            yield self.within(call, stack.enter_context, request(*args, **kwargs))

    @asynccontextmanager
    async def context_async(
        self, request: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> AsyncGenerator[Any]:
        """As `context`, for an asynchronous context manager."""
        async with AsyncExitStack() as stack:
            call = self.begin(args, kwargs)
            yield await self.within_async(call, stack.enter_async_context, request(*args, **kwargs))

    def within(
        self, call: LogicalCall | None, request: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Return ``request(*args, **kwargs)``, whose attempts belong to ``call``; None: to no call."""
        if call is None:
            return request(*args, **kwargs)
        outer = otel_context.attach(call.context)
        observer = current_call.set(call)
        try:
            answer = request(*args, **kwargs)
        except BaseException as error:
            call.raised(error)
            raise
        finally:
            current_call.reset(observer)
            otel_context.detach(outer)
        self.answered(call, answer)
        return answer

    async def within_async(
        self, call: LogicalCall | None, request: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """As `within`, for a function that returns an awaitable."""
        if call is None:
            return await request(*args, **kwargs)
        outer = otel_context.attach(call.context)
        observer = current_call.set(call)
        try:
            answer = await request(*args, **kwargs)
        except BaseException as error:
            call.raised(error)
            raise
        finally:
            current_call.reset(observer)
            otel_context.detach(outer)
        self.answered(call, answer)
        return answer
