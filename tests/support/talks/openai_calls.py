"""The expected calls of a session of OpenAI's Realtime API, by case."""

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
from support.talks.openai_script import SCRIPTS
from support.talks.program import HELLO, MODEL, PIXEL, TOOL

from playhead_semconv import attributes as a

SECOND = {a.GEN_AI_RESPONSE_ID: "resp_2"}
PICTURE = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PIXEL}


def with_tools(*cities: str) -> list[Call]:
    calls: list[Any] = []
    results: list[Any] = []
    for number, city in enumerate(cities, 1):
        named = {"id": f"c-{number}", "name": TOOL, "item_id": f"call_{number}"}
        calls.append({"type": "tool_call", **named, "arguments": {"city": city}})
        named = {"id": f"c-{number}", "item_id": f"out_{number}"}
        result = {"type": "tool_call_response", **named, "response": "sunny"}
        results.append({"role": "tool", "parts": [result]})
    called = {**DEFINED, a.PLAYHEAD_TOOL_CALLED: [TOOL] * len(cities)}
    return [
        Call("tool_call", calls, more=called, pieces=False),
        Call("stop", SUNNY, input=results, more={**DEFINED, **SECOND}),
    ]


RESUMED = [
    Call("error", HI, "1012", whole=False),
    Call("stop", HI_THERE, more={a.GEN_AI_SYSTEM_INSTRUCTIONS: None}),
]
OPENAI = Wire(
    "openai.realtime",
    SCRIPTS,
    {
        **COMMON,
        "image": [Call("stop", HI_THERE, input=user(text(HELLO), PICTURE, id="i1"))],
        "tools": with_tools("Oslo"),
        "parallel": with_tools("Oslo", "Rome"),
        "refusal": [Call("content_filter", HI)],
        "length": [Call("length", HI)],
        "failed": [Call("error", [], "overloaded")],
        "invalid": [Call("", [], "invalid_value", whole=False, pieces=False)],
        "session error": [Call("error", HI, "session_expired", whole=False)],
        "no object": [Call("stop", HI_THERE, "malformed_response")],
        "wrong shape": PLAIN,
        "unknown": PLAIN,
        "huge": PLAIN,
        "stopped": [Call("client_cancelled", HI)],
        "interrupted": [
            Call("turn_detected", HI),
            Call("stop", YES, input=user(text("Stop"), id="i2"), more=SECOND),
        ],
        "resumed": RESUMED,
        "resumed late": RESUMED,
    },
    {
        a.GEN_AI_OPERATION_NAME: "chat",
        a.GEN_AI_RESPONSE_MODEL: MODEL,
        a.GEN_AI_CONVERSATION_ID: "sess_1",
    },
    {a.GEN_AI_RESPONSE_ID: "resp_1", a.GEN_AI_CONVERSATION_ID: "conv_1"},
    {
        **USED,
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 3,
        a.GEN_AI_USAGE_TEXT_INPUT_TOKENS: 12,
        a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS: 5,
    },
    user(text(HELLO), id="i1"),
)
