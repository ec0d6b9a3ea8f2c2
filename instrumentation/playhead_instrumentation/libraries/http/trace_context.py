"""Put the trace context into what a client sends; the request object of the program is unchanged."""

from __future__ import annotations

from typing import Any

from playhead_instrumentation.libraries.http.exchange import HttpExchange


def httpx_headers(request: Any, exchange: HttpExchange) -> Any:
    """Return the headers to send: those of an httpx ``request``, or a copy with the trace context."""
    headers = request.headers
    fields = exchange.context_fields({name.decode("latin-1").lower() for name, _ in headers.raw})
    if not fields:
        return headers
    copied = type(headers)(headers)
    copied.update(fields)
    return copied


def aiohttp_headers(headers: Any, exchange: HttpExchange) -> Any:
    """Return ``headers``, a case-insensitive multi-dict of aiohttp, or a copy with the trace context."""
    fields = exchange.context_fields(headers)
    if not fields:
        return headers
    copied = headers.copy()
    copied.update(fields)
    return copied


def context_lines(head: list[bytes], exchange: HttpExchange) -> list[bytes]:
    """Return the trace context as lines for ``head``: the request line and its headers."""
    sent = {line.partition(b":")[0].decode("latin-1").lower() for line in head[1:]}
    return [f"{name}: {value}".encode() for name, value in exchange.context_fields(sent)]


def with_context(data: bytes, exchange: HttpExchange) -> bytes:
    """Return ``data``, a whole request, with the trace context in its head."""
    head, end, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    return b"\r\n".join([*lines, *context_lines(lines, exchange)]) + end + body
