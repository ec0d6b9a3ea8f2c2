"""One step of a run in full: messages, requests, responses, chunks with their times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.text import Text

from playhead_cli.views.tree import ERROR, FAINT, NUMBER
from playhead_cli.views.words import clock, gist, label, seconds, size, text_of, took
from playhead_semconv import attributes as a
from playhead_semconv.errors import TapeError
from playhead_semconv.genai.messages import (
    Blob,
    InputMessage,
    OutputMessage,
    Reasoning,
    ToolCall,
    ToolCallResponse,
    plain,
)
from playhead_semconv.genai.messages import Text as TextPart
from playhead_semconv.wire.encodings import decode_body

if TYPE_CHECKING:
    from playhead_replay import RecordedExchange, Run, Step
    from playhead_replay.run.messages import Messages
    from playhead_semconv.genai.messages import Part

TITLE = "bold"
CHUNK_CHARS = 100
"""Characters of a chunk that a line shows."""

LONG = (
    a.GEN_AI_INPUT_MESSAGES,
    a.GEN_AI_OUTPUT_MESSAGES,
    a.GEN_AI_SYSTEM_INSTRUCTIONS,
    a.GEN_AI_TOOL_DEFINITIONS,
)
"""Attributes that are shown as messages."""


def step_lines(run: Run, step: Step, messages: Messages) -> Iterator[Text]:
    """All that is known about a step, as text."""
    span = step.span
    head = Text(f"{run.name}:{step.number} ", style=NUMBER)
    head.append(label(span), style=TITLE)
    if gist(step):
        head.append(f"  {gist(step)}", style=ERROR if span.failed else "")
    yield head
    lasted = "not ended" if span.duration_ns is None else took(span.duration_ns)
    began = seconds(max(span.started_ns - run.started_ns, 0))
    yield Text(
        f"{clock(span.started_ns)}, {began} after the start, {lasted}, span {span.span_id}", FAINT
    )
    yield from _attributes(span.attributes)
    for event in span.events:
        said = event.attributes.get(a.EXCEPTION_MESSAGE, "")
        yield Text(f"{event.name} {event.attributes.get(a.EXCEPTION_TYPE, '')}: {said}", ERROR)
        yield from (Text(f"  {line}") for line in _stack(event.attributes))
    yield from _messages(messages)
    for state in run.states:
        if state.step == step.number:
            yield Text()
            yield Text(state.name, TITLE)
            yield from _body(json.dumps(state.value).encode() if state.has_content else b"")
    for exchange in run.exchanges_of(step):
        yield from exchange_lines(exchange)


def exchange_lines(exchange: RecordedExchange) -> Iterator[Text]:
    """One attempt: request, response, chunks."""
    yield Text()
    head = Text(f"{exchange.name} ", style=NUMBER)
    head.append(exchange.key, style=TITLE)
    yield head
    yield from (Text(f"  {name}: {value}", FAINT) for name, value in exchange.request_headers)
    try:
        yield from _body(exchange.request)
        yield from _response_lines(exchange)
    except TapeError as problem:
        yield Text(f"  {problem.what}", ERROR)


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
        yield Text(f"{len(chunks)} chunks, {size(sum(exchange.chunk_sizes))}", TITLE)
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
    text = json.dumps(data.decode(errors="replace"), ensure_ascii=False)[1:-1]
    return text if len(text) <= CHUNK_CHARS else text[: CHUNK_CHARS - 1] + "…"


def _body(data: bytes) -> Iterator[Text]:
    if not data:
        return
    try:
        text = json.dumps(json.loads(data), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = f"{size(len(data))} that are no text: {data[:32].hex(' ')}…"
    yield from (Text(f"  {line}") for line in text.splitlines())


def _attributes(attributes: dict[str, Any]) -> Iterator[Text]:
    for name, value in sorted(attributes.items()):
        if name not in LONG:
            text = Text(f"  {name}: ", FAINT)
            text.append(text_of(value), style="")
            yield text


def _stack(attributes: dict[str, Any]) -> list[str]:
    return str(attributes.get(a.EXCEPTION_STACKTRACE, "")).splitlines()


def _messages(messages: Messages) -> Iterator[Text]:
    if messages.system:
        yield Text()
        yield Text("system", TITLE)
        yield from (line for part in messages.system for line in _part(part))
    for message in messages.input:
        yield from message_lines(message, "→")
    for message in messages.output:
        yield from message_lines(message, "←")
    if messages.tools:
        yield Text()
        yield Text("tools: " + ", ".join(tool.name for tool in messages.tools), FAINT)


def message_lines(message: InputMessage | OutputMessage, arrow: str) -> Iterator[Text]:
    """One message, after an empty line. ``arrow``: whether it went to the model or came from it."""
    yield Text()
    yield Text(f"{arrow} {message.role}", TITLE)
    for part in message.parts:
        yield from _part(part)


def _part(part: Part) -> Iterator[Text]:
    if isinstance(part, TextPart):
        yield from (Text(f"  {line}") for line in part.content.splitlines())
    elif isinstance(part, Reasoning):
        yield from (Text(f"  {line}", FAINT) for line in part.content.splitlines())
    elif isinstance(part, ToolCall):
        yield Text(f"  calls {part.name}({text_of(part.arguments)})", NUMBER)
    elif isinstance(part, ToolCallResponse):
        yield from (Text(f"  {line}") for line in text_of(part.response).splitlines())
    elif isinstance(part, Blob):
        yield Text(
            f"  [{part.modality} {part.mime_type or ''}, {size(len(part.content) * 3 // 4)}]", FAINT
        )
    else:
        yield Text(f"  {text_of(plain(part))}")
