"""Each case with each SDK: one span of one call, exactly, and every byte on the tape."""

from __future__ import annotations

import gc
import json
from importlib import import_module
from typing import Any

import pytest
from opentelemetry.trace import StatusCode
from support.recorded_calls import Recorded
from support.scripted import Reply, ScriptedServer
from support.sdk_table import BROKEN, HI, SAYS, SDKS, STREAMED, WANTS, Sdk, replies
from support.sdks.cases import ABOUT, HELLO, MODEL, PIXEL, SCHEMA, TOOL, perform

from playhead_semconv import attributes as a

SHORT = frozenset(("plain", "stream", "again"))
"""Cases that every run of the suite has; the others are for acceptance."""


def combinations() -> list[Any]:
    return [
        pytest.param(
            name, case, id=f"{name} {case}", marks=[] if case in SHORT else [pytest.mark.acceptance]
        )
        for name, sdk in SDKS.items()
        for case in sdk.cases
    ]


def of_the_request(sdk: Sdk, name: str, case: str, port: int) -> dict[str, Any]:
    """Attributes that the request alone gives."""
    parts: list[Any] = [{"type": "text", "content": HELLO}]
    found: dict[str, Any] = {
        a.GEN_AI_OPERATION_NAME: sdk.operation,
        a.GEN_AI_REQUEST_MODEL: MODEL,
        a.SERVER_ADDRESS: "127.0.0.1",
        a.SERVER_PORT: port,
    }
    if sdk.provider:
        found[a.GEN_AI_PROVIDER_NAME] = sdk.provider
    if sdk.wire == "openai.chat":
        found[a.OPENAI_API_TYPE] = "chat_completions"
    if case == "image":
        parts.append({"type": "blob", **sdk.image, "modality": "image", "content": PIXEL})
    if WANTS.get(case) == "tools" or (name, case) == ("boto3", "schema"):
        tool = {"type": "function", "name": TOOL, "description": ABOUT, "parameters": SCHEMA}
        found[a.GEN_AI_TOOL_DEFINITIONS] = [tool]
    elif case == "schema":
        found[a.GEN_AI_OUTPUT_TYPE] = "json"
    return found | {a.GEN_AI_INPUT_MESSAGES: [{"role": "user", "parts": parts}]}


def of_the_answer(sdk: Sdk, name: str, case: str) -> dict[str, Any]:
    """Attributes that a whole answer gives."""
    said, parts = SAYS.get(case, HI), list[Any]()
    found: dict[str, Any] = {
        **sdk.told,
        a.GEN_AI_USAGE_INPUT_TOKENS: 12,
        a.GEN_AI_USAGE_OUTPUT_TOKENS: 5,
    }
    if sdk.wire == "openai.chat":
        found |= {a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0, a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 0}
    if said.reasoning:
        parts.append({"type": "reasoning", "content": said.reasoning})
    if said.text:
        refused = said.refused and name in ("groq", "together", "huggingface_hub")
        parts.append({"type": "refusal" if refused else "text", "content": said.text})
    reason = "stop"
    for id, arguments in said.calls:
        ids = {} if name == "ollama" else {"id": id}
        parts.append({"type": "tool_call", **ids, "name": TOOL, "arguments": arguments})
        found[a.PLAYHEAD_TOOL_CALLED] = (TOOL,)
        reason = "stop" if name in ("ollama", "google-genai") else "tool_call"
    if said.refused and name in ("google-genai", "boto3"):
        reason = "content_filter"
    found[a.GEN_AI_RESPONSE_FINISH_REASONS] = (reason,)
    return found | {a.GEN_AI_OUTPUT_MESSAGES: [{"role": "assistant", "parts": parts}]}


def of_a_broken_stream(sdk: Sdk, case: str) -> dict[str, Any]:
    """Attributes after its first event."""
    found: dict[str, Any] = {**sdk.told, **sdk.first}
    if sdk.wire != "cohere.chat":
        found[a.GEN_AI_RESPONSE_FINISH_REASONS] = ("error",)
    errors = {"malformed": "malformed_response", "cancelled": "asyncio.exceptions.CancelledError"}
    if case in errors:
        found[a.ERROR_TYPE] = errors[case]
    elif case == "abandoned":
        found[a.PLAYHEAD_END_HOW] = "abandoned"
    return found


OF_THE_TAPE = (a.PLAYHEAD_EXCHANGE_REF, a.PLAYHEAD_RESTS_ON, a.PLAYHEAD_WIRE, a.PLAYHEAD_DERIVED)
JSON = (
    a.GEN_AI_INPUT_MESSAGES,
    a.GEN_AI_OUTPUT_MESSAGES,
    a.GEN_AI_TOOL_DEFINITIONS,
)


def read(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with those that are JSON decoded."""
    return {
        name: json.loads(value) if name in JSON and isinstance(value, str) else value
        for name, value in attributes.items()
    }


@pytest.mark.parametrize(("name", "case"), combinations())
def test_a_call(name: str, case: str, server: ScriptedServer, recorded: Recorded):
    sdk, answers = SDKS[name], replies(SDKS[name], case)
    server.script(answers)
    module, _, kind = sdk.adapter.partition(":")
    done = perform(getattr(import_module(f"support.sdks.{module}"), kind), server.url, case)
    server.close()
    gc.collect()
    span: Any = recorded.call()
    attempts: Any = recorded.attempts()
    left = read(dict(span.attributes))
    tape = {name: left.pop(name, None) for name in OF_THE_TAPE}
    expected = of_the_request(sdk, name, case, server.port)
    if case in ("refused", "failed", "timeout"):
        expected[a.ERROR_TYPE] = sdk.errors[("refused", "failed", "timeout").index(case)]
        assert done.endswith(("Error", "Timeout", "Exception"))
    elif case in BROKEN and not (case == "malformed" and sdk.reads_on):
        expected |= read(of_a_broken_stream(sdk, case))
        if case == "malformed":
            assert left.pop(a.PLAYHEAD_END_HOW, "abandoned") == "abandoned"
        if case == "cut":
            assert left.pop(a.ERROR_TYPE).endswith(("ProtocolError", "IncompleteRead"))
    else:
        expected |= of_the_answer(sdk, name, case)
        if case == "malformed":
            expected[a.ERROR_TYPE] = "malformed_response"
    if case in STREAMED:
        expected[a.GEN_AI_REQUEST_STREAM] = True
        waited = left.pop(a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK)
        assert 0 < waited <= (span.end_time - span.start_time) / 1e9
    assert left == expected
    assert span.name == f"{sdk.operation} {MODEL}"
    failed = a.ERROR_TYPE in span.attributes
    assert span.status.status_code is (StatusCode.ERROR if failed else StatusCode.UNSET)
    assert [one.parent.span_id for one in attempts] == [span.context.span_id] * len(answers)
    resent = [one.attributes.get(a.HTTP_REQUEST_RESEND_COUNT, 0) for one in attempts]
    assert resent == list(range(len(answers)))
    assert tape[a.PLAYHEAD_WIRE] == sdk.wire
    told_as_it_was(recorded, server, answers, case)


def told_as_it_was(recorded: Recorded, server: ScriptedServer, answers: list[Reply], case: str) -> None:
    """Every byte of requests and answers is on the tape."""
    tape = recorded.sink.tape
    exchanges = list(tape.exchanges().values())
    assert [tape.read(one.ask.body) for one in exchanges] == [one.body for one in server.requests]
    for exchange, reply in zip(exchanges, answers, strict=True):
        sent = b"".join(part for part in reply.parts if isinstance(part, bytes))
        got = b"".join(tape.read(part.data) for part in exchange.parts)
        if case in BROKEN | {"timeout"}:
            assert sent.startswith(got)
        else:
            assert got == sent
