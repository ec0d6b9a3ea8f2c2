"""The expected calls of a session of OpenAI's Responses API over a WebSocket, by case."""

from __future__ import annotations

from typing import Any

from support.talks.calls import (
    COMMON,
    DEFINED,
    HI,
    HI_THERE,
    PLAIN,
    SUNNY,
    USED,
    YES,
    Call,
    Wire,
    text,
    user,
)
from support.talks.program import HELLO, MODEL, PIXEL, TOOL
from support.talks.responses_script import SCRIPTS, SHAPED

from playhead_semconv import attributes as a

SECOND = {a.GEN_AI_RESPONSE_ID: "resp_2", a.GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID: "resp_1"}
PICTURE = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PIXEL}


def with_tools(*cities: str) -> list[Call]:
    calls: list[Any] = []
    results: list[Any] = []
    for number, city in enumerate(cities, 1):
        named = {"id": f"c-{number}", "name": TOOL, "item_id": f"call_{number}"}
        calls.append({"type": "tool_call", **named, "arguments": {"city": city}})
        result = {"type": "tool_call_response", "id": f"c-{number}", "response": "sunny"}
        results.append({"role": "tool", "parts": [result]})
    called = {**DEFINED, a.PLAYHEAD_TOOL_CALLED: [TOOL] * len(cities)}
    return [
        Call("tool_call", calls, more=called),
        Call("stop", SUNNY, input=results, more={**DEFINED, **SECOND}),
    ]


RESPONSES = Wire(
    "openai.responses_websocket",
    SCRIPTS,
    {
        **COMMON,
        "image": [Call("stop", HI_THERE, input=user(text(HELLO), PICTURE))],
        "schema": [Call("stop", [text(SHAPED)], more={a.GEN_AI_OUTPUT_TYPE: "json"})],
        "tools": with_tools("Oslo"),
        "parallel": with_tools("Oslo", "Rome"),
        "refusal": [Call("content_filter", HI)],
        "length": [Call("length", HI)],
        "failed": [Call("error", HI, "rate_limit_exceeded")],
        "invalid": [Call("", [], "previous_response_not_found", whole=False, pieces=False)],
        "session error": [Call("error", HI, "server_error", whole=False)],
        "no object": [Call("stop", HI_THERE, "malformed_response")],
        "wrong shape": PLAIN,
        "unknown": PLAIN,
        "huge": PLAIN,
        "interrupted": [
            Call("steered", HI),
            Call("stop", YES, input=user(text("Stop")), more=SECOND),
        ],
    },
    {a.GEN_AI_OPERATION_NAME: "chat", a.OPENAI_API_TYPE: "responses"},
    {a.GEN_AI_RESPONSE_ID: "resp_1", a.GEN_AI_RESPONSE_MODEL: MODEL},
    {
        **USED,
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 3,
        a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: 0,
        a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 0,
    },
    user(text(HELLO)),
)
