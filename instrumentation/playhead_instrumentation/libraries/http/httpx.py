"""Record requests of httpx and httpx2, sync and async.

The patch is on `Client._transport_for_url`, which gives every attempt its transport: each hop of a
redirect or an auth flow, and each retry, whatever transport the program gave the client. The patch
returns an object that wraps that transport for one attempt, below the decoder.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

from playhead_core.facts import Delivery
from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.http.exchange import (
    DEFAULT_PORTS,
    HttpExchange,
    Incoming,
    Outgoing,
    begin,
    httpx_headers,
)
from playhead_instrumentation.libraries.http.recorded_response import (
    AsyncRecordedStream,
    RecordedResponse,
    RecordedStream,
    recorded_trace,
)
from playhead_instrumentation.libraries.mcp.http_sessions import NAME as SESSION
from playhead_instrumentation.libraries.mcp.http_sessions import SESSIONS
from playhead_instrumentation.patching.lanes import In, Outside, Shadow, among_greenlets, current
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session


def patch(module: ModuleType) -> None:
    """Patch the clients of httpx or httpx2, which may be the same module under two names."""
    kit = Kit(module)
    for name, attempt in (("Client", SyncAttempt), ("AsyncClient", AsyncAttempt)):
        owner = required(module, name)
        if not PATCHES.covers(owner, "_transport_for_url"):
            PATCHES.around(owner, "_transport_for_url", functools.partial(_recorded, attempt, kit))


def _recorded(attempt: Any, kit: Kit, transport_for_url: Any, client: Any, url: Any) -> Any:
    transport = transport_for_url(client, url)
    session = recording_requests()
    return transport if session is None else attempt(transport, session, kit)


class Kit:
    """Stream classes derived from those of the library, because its clients check the type."""

    def __init__(self, module: ModuleType) -> None:
        self.module: Any = module
        sync, asynchronous = required(module, "SyncByteStream"), required(module, "AsyncByteStream")
        self.Tee: Any = type("Tee", (_Tee, sync), {})
        self.AsyncTee: Any = type("AsyncTee", (_AsyncTee, asynchronous), {})
        self.Sent: Any = type("Sent", (_Sent, sync), {})
        self.AsyncSent: Any = type("AsyncSent", (_AsyncSent, asynchronous), {})
        self.RecordedStream: Any = type("RecordedStream", (RecordedStream, sync), {})
        self.AsyncRecordedStream: Any = type(
            "AsyncRecordedStream", (AsyncRecordedStream, asynchronous), {}
        )

    def edited(self, request: Any, exchange: HttpExchange) -> Any:
        """Replace the body of ``request`` by that of a fork, if any. Returns the original stream."""
        stream, body = request.stream, exchange.call.replaced
        if body is not None:
            request.stream = self.module.ByteStream(body)
            request.headers["content-length"] = str(len(body))
        return stream


def _outgoing(request: Any, body: bytes | None) -> Outgoing:
    url = request.url
    port = url.port or DEFAULT_PORTS.get(url.scheme, 0)
    return Outgoing(str(request.method), str(url), request.headers.raw, url.host, port, body)


def _server_address(response: Any) -> Any:
    """Return the address that answered, or None if the transport does not say it."""
    try:
        return response.extensions["network_stream"].get_extra_info("server_addr")
    except Exception:
        return None


def _body_of(response: Any, module: Any) -> tuple[bytes, str] | None:
    """Body and content coding of a response that its transport has already read, as mocks and caches do.

    The coding is empty unless the body is already decoded. None: the body is yet to come.
    """
    content: bytes | None = getattr(response, "_content", None)
    if content is None:
        return (b"", "") if response.is_stream_consumed else None
    coding: str = response.headers.get("content-encoding", "")
    if coding and type(response.stream) is module.ByteStream:
        return b"".join(response.stream), ""
    return content, coding


def _answered(exchange: HttpExchange, response: Any, at: Delivery | None, kit: Kit, tee: Any) -> None:
    """The head has arrived. The body comes through a ``tee``, unless it came with the head."""
    exchange.peer = _server_address(response)
    body = _body_of(response, kit.module)
    if body is None:
        exchange.answered(_incoming, response, at)
        response.stream = tee(response.stream, exchange)
        return
    data, lacks = body
    exchange.answered(functools.partial(_incoming, unpacked=bool(lacks)), response, at)
    exchange.whole(data, at, lacks)


def _incoming(response: Any, unpacked: bool = False) -> Incoming:
    headers, extensions = response.headers, response.extensions
    reason = extensions.get("reason_phrase")
    return Incoming(
        response.status_code,
        headers.raw,
        extensions.get("http_version", b"HTTP/1.1").decode("ascii", "ignore"),
        None if reason is None else reason.decode("latin-1"),
        headers.get("content-type", ""),
        "" if unpacked else headers.get("content-encoding", ""),
        extensions.get("stream_id"),
    )


class SyncAttempt:
    """Wraps a transport for one attempt."""

    def __init__(self, transport: Any, session: Session, kit: Kit) -> None:
        self._transport = transport
        self._session = session
        self._kit = kit

    def handle_request(self, request: Any) -> Any:
        """As the transport does."""
        return PATCHES.call(self._handle, self._transport.handle_request, request)

    def _handle(self, handle_request: Any, request: Any) -> Any:
        body: bytes | None = getattr(request, "_content", None)
        if body is None and self._session.driver.closed:
            body = request.read()
        exchange = begin(self._session, _outgoing, request, body)
        if exchange is None:
            return handle_request(request)
        try:
            exchange.release()
            try:
                response = exchange.call.answer(
                    self._send, self._again, exchange, request, body, handle_request
                )
            except Exception as error:
                exchange.failed(error, exchange.call.arrive().wait())
                raise
            at = exchange.call.arrive().wait()
        except BaseException as error:
            exchange.thrown(error)
            raise
        _answered(exchange, response, at, self._kit, self._kit.Tee)
        return response

    def _again(self, played: PlayedExchange, exchange: HttpExchange, request: Any, *_: Any) -> Any:
        recorded = RecordedResponse(played, self._kit.module)
        trace = recorded_trace(request, exchange)
        if trace is not None:
            for event in recorded.events.head():
                trace(*event)
        return recorded.head(functools.partial(self._kit.RecordedStream, trace=trace))

    def _send(
        self, exchange: HttpExchange, request: Any, body: bytes | None, handle_request: Any
    ) -> Any:
        stream, extensions = self._kit.edited(request, exchange), request.extensions
        if body is None:
            request.stream = self._kit.Sent(stream, exchange)
        trace = recorded_trace(request, exchange) if "trace" in extensions else None
        if trace is not None:
            request.extensions = {**extensions, "trace": trace}
        headers = request.headers
        request.headers = sent = httpx_headers(request, exchange)
        try:
            with Outside():
                return handle_request(request)
        finally:
            request.stream, request.extensions = stream, extensions
            if request.headers is sent:
                request.headers = headers


class AsyncAttempt:
    """Wraps an async transport for one attempt."""

    def __init__(self, transport: Any, session: Session, kit: Kit) -> None:
        self._transport = transport
        self._session = session
        self._kit = kit

    async def handle_async_request(self, request: Any) -> Any:
        """As the transport does."""
        return await PATCHES.call_async(self._handle, self._transport.handle_async_request, request)

    async def _handle(self, handle_async_request: Any, request: Any) -> Any:
        body: bytes | None = getattr(request, "_content", None)
        if body is None and self._session.driver.closed:
            body = await request.aread()
        exchange = begin(self._session, _outgoing, request, body)
        if exchange is None:
            return await handle_async_request(request)
        try:
            await exchange.arelease()
            try:
                response = await exchange.call.answer(
                    self._send, self._again, exchange, request, body, handle_async_request
                )
            except Exception as error:
                exchange.failed(error, await exchange.call.arrive())
                raise
            at = await exchange.call.arrive()
        except BaseException as error:
            await exchange.cancelled(error)
            raise
        _answered(exchange, response, at, self._kit, self._kit.AsyncTee)
        return response

    async def _again(
        self, played: PlayedExchange, exchange: HttpExchange, request: Any, body: bytes | None, *_: Any
    ) -> Any:
        recorded = RecordedResponse(played, self._kit.module)
        trace = recorded_trace(request, exchange)
        if trace is not None:
            for event in recorded.events.head():
                await trace(*event)
        response = recorded.head(functools.partial(self._kit.AsyncRecordedStream, trace=trace))
        SESSIONS.played(request, body, response)
        return response

    async def _send(
        self, exchange: HttpExchange, request: Any, body: bytes | None, handle_async_request: Any
    ) -> Any:
        stream, extensions = self._kit.edited(request, exchange), request.extensions
        if body is None:
            request.stream = self._kit.AsyncSent(stream, exchange)
        trace = recorded_trace(request, exchange) if "trace" in extensions else None
        if trace is not None:
            request.extensions = {**extensions, "trace": trace}
        headers = request.headers
        request.headers = sent = httpx_headers(request, exchange)
        recorded = ""
        try:
            with Shadow():
                recorded = await SESSIONS.renew(self._transport, request, self._kit.module.Request)
                return await handle_async_request(request)
        finally:
            request.stream, request.extensions = stream, extensions
            if request.headers is sent:
                request.headers = headers
            if recorded:
                request.headers[SESSION] = recorded


class _Teed:
    """Base of both tees. The exchange ends with the stream, or when the tee is garbage-collected."""

    def __init__(self, stream: Any, exchange: HttpExchange) -> None:
        self._stream = stream
        self._exchange = exchange
        self._closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __del__(self) -> None:
        try:
            if self._exchange.call.ended is None:
                self._exchange.abandoned()
        except Exception:  # while the interpreter goes down
            return


class _Tee(_Teed):
    """Passes on the chunks of a response; each is recorded before the program gets it."""

    def __iter__(self) -> Iterator[bytes]:
        exchange = self._exchange
        call = exchange.call
        source = iter(self._stream)
        outside = Outside()
        try:
            while call.ended is None:
                try:
                    try:
                        with outside:
                            chunk = next(source)
                    except StopIteration:
                        if among_greenlets():
                            self._closes()
                        exchange.finished(call.arrive().wait())
                        return
                    except Exception as error:
                        exchange.failed(error, call.arrive().wait())
                        raise
                    at = call.arrive().wait()
                except BaseException as error:
                    exchange.thrown(error)
                    raise
                exchange.received(chunk, at)
                yield chunk
            yield from source
        finally:
            if hasattr(source, "close"):
                source.close()

    def close(self) -> None:
        """As the stream does."""
        exchange = self._exchange
        try:
            if not self._closed:
                self._closes()
        finally:
            if exchange.call.ended is None:
                exchange.abandoned(exchange.call.left_by_greenlet())

    def _closes(self) -> None:
        """Close the stream. Among greenlets this comes before its end, because others run meanwhile."""
        with Shadow():
            self._stream.close()
        self._closed = True


class _AsyncTee(_Teed):
    """Passes on the chunks of a response; each is recorded before the program gets it."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        call = exchange.call
        source = self._stream.__aiter__()
        outside = Shadow()
        try:
            while call.ended is None:
                try:
                    try:
                        with outside:
                            chunk = await source.__anext__()
                    except StopAsyncIteration:
                        await self._ends_early()
                        exchange.finished(await call.arrive())
                        return
                    except Exception as error:
                        exchange.failed(error, await call.arrive())
                        raise
                    at = await call.arrive()
                except BaseException as error:
                    await exchange.cancelled(error)
                    raise
                exchange.received(chunk, at)
                yield chunk
            async for chunk in source:
                yield chunk
        finally:
            if hasattr(source, "aclose"):
                await source.aclose()

    async def _ends_early(self) -> None:
        """Close the exhausted stream before the program sees its end, because closing may take time."""
        with Shadow():
            await self._stream.aclose()
        self._closed = True

    async def aclose(self) -> None:
        """As the stream does."""
        exchange = self._exchange
        try:
            if not self._closed:
                with Shadow():
                    await self._stream.aclose()
        finally:
            if exchange.call.ended is None:
                await exchange.left()


class _Sent:
    """Passes on the pieces of a streamed request body; each is recorded before it is sent."""

    def __init__(self, stream: Any, exchange: HttpExchange) -> None:
        self._stream = stream
        self._exchange = exchange
        self._lane = current()

    def __iter__(self) -> Iterator[bytes]:
        source = iter(self._stream)
        while True:
            try:
                with In(self._lane):
                    chunk = next(source)
            except StopIteration:
                self._exchange.all_sent()
                return
            self._exchange.sent(chunk)
            yield chunk


class _AsyncSent:
    """The same for a body that is produced asynchronously."""

    def __init__(self, stream: Any, exchange: HttpExchange) -> None:
        self._stream = stream
        self._exchange = exchange
        self._lane = current()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        source = self._stream.__aiter__()
        while True:
            try:
                with In(self._lane):
                    chunk = await source.__anext__()
            except StopAsyncIteration:
                self._exchange.all_sent()
                return
            self._exchange.sent(chunk)
            yield chunk
