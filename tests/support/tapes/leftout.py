"""Logical calls as an agent sends them to a playhead endpoint, with their content left out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.servers.scripted import chat_sse, openai_chat
from support.tapes.handmade import HandMade

from playhead_core.facts import ExchangeId
from playhead_core.otlp import attributes_of
from playhead_genai.providers import CONTENT_ATTRIBUTES, Derived, WireResponse, derive
from playhead_receiver.storage import StoredSpan
from playhead_receiver.storage.spans.whole_spans import span_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

URL = "https://api.openai.com/v1/chat/completions"
STREAM = [("content-type", "text/event-stream")]


@dataclass
class Call:
    """What was sent, and what an endpoint other than playhead would have received."""

    stored: StoredSpan
    whole: dict[str, Any]
    """Attributes of the span before anything was left out."""
    exchange: ExchangeId
    rests_on: int


def request_body(question: str) -> bytes:
    return json.dumps(
        {
            "model": "gpt-4o",
            "stream": True,
            "messages": [
                {"role": "system", "content": "You are terse."},
                {"role": "user", "content": question},
            ],
            "tools": [{"type": "function", "function": {"name": "search", "parameters": {}}}],
        }
    ).encode()


def answer_chunks(text: str) -> tuple[bytes, ...]:
    parts = chat_sse(openai_chat.completion(text)).parts
    return tuple(part for part in parts if isinstance(part, bytes))


def derived_from(request: bytes, chunks: tuple[bytes, ...], complete: bool = True) -> Derived:
    """What the agent derives from an exchange."""
    response = WireResponse(200, STREAM, chunks, complete)
    return derive("openai.chat", request, response)


def exchange(made: HandMade, request: bytes, chunks: tuple[bytes, ...], span: int) -> ExchangeId:
    """A streamed exchange."""
    id = made.exchange(f"POST {URL}", request, chunks, span=span)
    for place, fact in enumerate(made.facts):
        if fact.name == e.PLAYHEAD_EXCHANGE_RESPONSE and fact.exchange == id:
            head = {**fact.attributes, a.PLAYHEAD_HTTP_HEADERS: [*STREAM[0]]}
            made.facts[place] = msgspec.structs.replace(fact, attributes=head)
    return id


def chat(made: HandMade, question: str, answer: str) -> Call:
    """A complete call on ``made``; its span is not in ``made.spans``."""
    request, chunks = request_body(question), answer_chunks(answer)
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
    id = exchange(made, request, chunks, attempt)
    made.finish(attempt)
    rests_on = made.facts[-1].seq
    derived = derived_from(request, chunks)
    found = {name: derived.attributes[name] for name in CONTENT_ATTRIBUTES if name in derived.attributes}
    assert {a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES, a.GEN_AI_TOOL_DEFINITIONS} <= set(found)
    kept = {name: value for name, value in derived.attributes.items() if name not in found}
    own = {
        **kept,
        a.PLAYHEAD_WIRE: "openai.chat",
        a.PLAYHEAD_EXCHANGE_REF: f"{made.instance.hex()}/{id}",
        a.PLAYHEAD_RESTS_ON: rests_on,
        a.PLAYHEAD_DERIVED: list(found),
    }
    made.finish(call, **own)
    return Call(made.spans.pop(), {**own, **found}, id, rests_on)


def attributes(envelope: ResourceSpans) -> dict[str, Any]:
    """Attributes of the one span in ``envelope``."""
    return attributes_of(span_of(envelope).attributes)
