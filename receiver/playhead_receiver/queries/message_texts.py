"""The texts of a span as people read them, each with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import unquote_plus

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Status

from playhead_core.otlp import attributes_of
from playhead_core.reports import NAMES, report_of
from playhead_genai.messages import (
    InputMessage,
    OutputMessage,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolCallResponse,
    plain,
)
from playhead_genai.readable_text import OF_CONVENTIONS, arguments_of, calls_in, news, text_of
from playhead_receiver.storage.content.references import References
from playhead_replay.run.messages import Messages, read_messages
from playhead_semconv import attributes as a

FORM = frozenset(("role", "type", "finish_reason"))
"""Keys of messages whose values are words of the format; they are found in all runs."""


class Speech(NamedTuple):
    """A text and its source: a role, a tool, the method of a request, or the name of an attribute.

    ``step`` is the name of the step itself.
    """

    who: str
    text: str


def speeches_of(envelope: ResourceSpans, references: References) -> list[Speech]:
    """The texts of a span, in order; of the message history only what is new.

    ``references``: reads content that the span only refers to.
    """
    span = envelope.scope_spans[0].spans[0]
    at = attributes_of(span.attributes)
    messages = read_messages(at | references.resolved(at)[0])
    found = [*_asked(messages), *_tool(at), *_request(at, span.name), *_answered(messages)]
    if span.status.code == Status.STATUS_CODE_ERROR:
        found.append(Speech("error", span.status.message or str(at.get(a.ERROR_TYPE, ""))))
    if a.PLAYHEAD_RUN_AGENT not in at:
        found.append(Speech("step", span.name))
    for name, value in sorted(at.items()):
        if not name.startswith(OF_CONVENTIONS):
            found.append(Speech(name, text_of(value)))
    return [speech for speech in found if speech.text.strip()]


def earlier_speeches_of(envelope: ResourceSpans, references: References) -> list[Speech]:
    """The texts of the history that a call repeats."""
    at = attributes_of(envelope.scope_spans[0].spans[0].attributes)
    messages = read_messages(at | references.resolved(at)[0]).input
    earlier = messages[: len(messages) - len(news(messages))]
    return list(_of_messages(earlier, calls_in(messages)))


def other_texts_of(envelope: ResourceSpans, references: References) -> Iterator[Speech]:
    """All other words of a span: its name, its events, and each text in its attributes, however deep."""
    span = envelope.scope_spans[0].spans[0]
    at = attributes_of(span.attributes)
    yield Speech("step", span.name)
    for event in span.events:
        yield Speech("event", event.name)
        report = report_of(event.name, attributes_of(event.attributes)) if event.name in NAMES else None
        if report is not None:
            yield Speech(report.kind, " ".join(map(text_of, report.fields.values())))
    for name, value in sorted((at | references.resolved(at)[0]).items()):
        if name.startswith("playhead."):  # words of the recorder, which are found in all runs
            continue
        yield from (Speech(name, text) for text in _texts_in(_decoded(value)))


def _decoded(value: Any) -> Any:
    """An attribute that holds JSON, as messages do, decoded; any other as it is."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) and value[:1] in "[{" else value
    except (msgspec.DecodeError, RecursionError):
        return value


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in cast("dict[Any, Any]", value).items():
            if key not in FORM:
                yield from _texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[Any]", value):
            yield from _texts_in(inner)
    elif value is not None:
        yield text_of(value)


def _asked(messages: Messages) -> Iterator[Speech]:
    new = news(messages.input)
    if len(new) == len(messages.input):
        yield from (Speech("system", _words(part)) for part in messages.system)
    yield from _of_messages(new, calls_in(messages.input))
    if len(new) == len(messages.input):
        for tool in messages.tools:
            yield Speech("tool", f"{tool.name}: {tool.description or ''}")


def _answered(messages: Messages) -> Iterator[Speech]:
    return _of_messages(messages.output, {})


def _of_messages(messages: Any, calls: Mapping[str, ToolCall]) -> Iterator[Speech]:
    message: InputMessage | OutputMessage
    for message in messages:
        for part in message.parts:
            who = message.role
            if isinstance(part, Reasoning):
                who = "reasoning"
            elif isinstance(part, ToolCallResponse) and (call := calls.get(part.id or "")):
                who = call.name
            elif isinstance(part, ToolCall):
                who = f"calls {part.name}"
            yield Speech(who, _words(part))


def _words(part: Part) -> str:
    if isinstance(part, Text | Reasoning):
        return part.content
    if isinstance(part, ToolCall):
        return arguments_of(part.arguments)
    return text_of(part.response if isinstance(part, ToolCallResponse) else plain(part))


def _tool(at: Mapping[str, Any]) -> Iterator[Speech]:
    name = str(at.get(a.GEN_AI_TOOL_NAME, "tool"))
    if a.GEN_AI_TOOL_CALL_ARGUMENTS in at:
        yield Speech(name, arguments_of(at[a.GEN_AI_TOOL_CALL_ARGUMENTS]))
    if a.GEN_AI_TOOL_CALL_RESULT in at:
        yield Speech(name, text_of(at[a.GEN_AI_TOOL_CALL_RESULT]))


def _request(at: Mapping[str, Any], name: str) -> Iterator[Speech]:
    """The address of a request that is no call of a model."""
    if a.GEN_AI_OPERATION_NAME in at:
        return
    method = str(at.get(a.HTTP_REQUEST_METHOD, name))
    if a.URL_FULL in at:
        yield Speech(method, unquote_plus(str(at[a.URL_FULL])))
    elif a.URL_PATH in at:
        query = f"?{at[a.URL_QUERY]}" if at.get(a.URL_QUERY) else ""
        yield Speech(method, unquote_plus(f"{at[a.URL_PATH]}{query}"))
