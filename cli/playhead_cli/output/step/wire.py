"""One step on the wire: attributes, headers, bytes, chunks with their times, every attempt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from playhead_cli.output.message_text import text_in
from playhead_cli.output.step.overview import attribute_lines, exception_lines, heading
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, TITLE
from playhead_cli.output.words import clock, count, seconds, size, took
from playhead_core.errors import TapeError
from playhead_genai.providers.encodings import decode_body
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_replay import RecordedExchange, Run, Step

LONG = (
    a.GEN_AI_INPUT_MESSAGES,
    a.GEN_AI_OUTPUT_MESSAGES,
    a.GEN_AI_SYSTEM_INSTRUCTIONS,
    a.GEN_AI_TOOL_DEFINITIONS,
)
"""Attributes that are shown as messages."""


def wire_lines(run: Run, step: Step) -> Iterator[Text]:
    """Everything that is recorded of a step except its messages."""
    span = step.span
    yield heading(run, step)
    lasted = "not ended" if span.duration_ns is None else took(span.duration_ns)
    began = seconds(max(span.started_ns - run.started_ns, 0))
    yield Text(
        f"{clock(span.started_ns)}, {began} after the start, {lasted}, span {span.span_id}", FAINT
    )
    yield from attribute_lines({name: one for name, one in span.attributes.items() if name not in LONG})
    for event in span.events:
        yield from exception_lines(event, everything=True)
    before: RecordedExchange | None = None
    for equal in _equal(run.exchanges_of(step)):
        yield from _exchange_lines(equal, run, before)
        before = equal[0]


def _equal(exchanges: Sequence[RecordedExchange]) -> list[list[RecordedExchange]]:
    """Return exchanges in order, with consecutive equal ones in one group."""
    found: list[list[RecordedExchange]] = []
    last: Any = None
    for exchange in exchanges:
        this = _sameness(exchange)
        if found and this is not None and this == last:
            found[-1].append(exchange)
        else:
            found.append([exchange])
        last = this
    return found


def _sameness(exchange: RecordedExchange) -> Any:
    """Return a key that is equal for equal requests with equal results; None if unknown."""
    end = exchange.end
    try:
        answer = decode_body(exchange.response_headers, [exchange.response])[0]
        return exchange.key, exchange.request, exchange.status_code, answer, end and (end.how, end.error)
    except TapeError:
        return None


def _exchange_lines(
    equal: Sequence[RecordedExchange], run: Run, before: RecordedExchange | None
) -> Iterator[Text]:
    """One attempt: request, response, chunks; or several that are ``equal``."""
    exchange = equal[0]
    yield Text()
    head = Text(f"{', '.join(one.name for one in equal)} ", style=NUMBER)
    head.append(exchange.key, style=TITLE)
    if len(equal) > 1:
        head.append(f" ×{len(equal)}", style=TITLE)
    yield head
    if len(equal) > 1:
        begins = [seconds(max(one.exchange.time_ns - run.started_ns, 0)) for one in equal]
        yield Text(f"  equal attempts, {', '.join(begins)} after the start; this is the first", FAINT)
    yield from (Text(f"  {name}: {value}", FAINT) for name, value in exchange.request_headers)
    try:
        if before is not None and before.key == exchange.key and _request(before) == exchange.request:
            yield Text(f"  the body is that of {before.name}: {size(len(exchange.request))}", FAINT)
        else:
            yield from _body(exchange.request)
        yield from _response_lines(exchange)
    except TapeError as problem:
        yield Text(f"  {problem.what}", ERROR)


def _request(exchange: RecordedExchange) -> bytes | None:
    try:
        return exchange.request
    except TapeError:
        return None


def _response_lines(exchange: RecordedExchange) -> Iterator[Text]:
    sent_ns = exchange.exchange.time_ns
    if exchange.status_code is not None:
        after = took(exchange.exchange.head_time_ns - sent_ns)
        style = ERROR if exchange.status_code >= 400 else TITLE
        yield Text(f"{exchange.status_code} after {after}", style)
        yield from (Text(f"  {name}: {value}", FAINT) for name, value in exchange.response_headers)
    chunks = exchange.chunks
    body, problem = decode_body(exchange.response_headers, [chunk.data for chunk in chunks])
    if _is_stream(exchange):
        encoded = any(name.lower() == "content-encoding" for name, _ in exchange.response_headers)
        yield Text(f"{count(len(chunks), 'chunk')}, {size(sum(exchange.chunk_sizes))}", TITLE)
        for chunk in chunks:
            shown = size(len(chunk.data)) if encoded else _chunk_text(chunk.data)
            yield Text(f"  +{(chunk.time_ns - sent_ns) / 1e9:.3f}s  {shown}")
        if encoded:
            yield from _body(body)
    else:
        yield from _body(body)
    if problem:
        yield Text(f"  {problem}", ERROR)
    end = exchange.end
    if end is None:
        yield Text("not answered when the tape ends", ERROR)
    elif end.how != "complete":
        error = f": {end.error.qualname}: {end.error.message}" if end.error is not None else ""
        yield Text(f"{end.how}{error}", ERROR if end.how == "error" else FAINT)


def _is_stream(exchange: RecordedExchange) -> bool:
    kind = next((v for name, v in exchange.response_headers if name.lower() == "content-type"), "")
    return "event-stream" in kind or len(exchange.chunk_sizes) > 1


def _chunk_text(data: bytes) -> str:
    return json.dumps(data.decode(errors="replace"), ensure_ascii=False)[1:-1]


def _body(data: bytes) -> Iterator[Text]:
    """Yield a body as it is, if it is text."""
    text = text_in(data)
    if text is None:
        text = f"{size(len(data))} that are no text: {data[:32].hex(' ')}…"
    yield from (Text(f"  {line}") for line in text.splitlines())
