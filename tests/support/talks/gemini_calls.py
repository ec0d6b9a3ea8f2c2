"""The expected calls of a session of Gemini's Live API, by case."""

from __future__ import annotations

from typing import Any

from support.talks.calls import (
    COMMON,
    DEFINED,
    HI,
    HI_THERE,
    LEFT,
    SUNNY,
    USED,
    YES,
    Call,
    Wire,
    text,
    user,
)
from support.talks.gemini_script import SCRIPTS
from support.talks.program import HELLO, PIXEL, TOOL

from playhead_semconv import attributes as a

PICTURE = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PIXEL}


def with_tools(*cities: str) -> list[Call]:
    calls: list[Any] = []
    results: list[Any] = []
    for number, city in enumerate(cities, 1):
        named = {"id": f"c-{number}", "name": TOOL}
        calls.append({"type": "tool_call", **named, "arguments": {"city": city}})
        response = {"id": f"c-{number}", "response": {"sky": "sunny"}}
        results.append({"type": "tool_call_response", **response})
    called = {**DEFINED, a.PLAYHEAD_TOOL_CALLED: [TOOL] * len(cities)}
    return [
        Call("tool_call", calls, more=called),
        Call("stop", SUNNY, input=[{"role": "tool", "parts": results}], more=DEFINED),
    ]


THOUGHT = {"type": "reasoning", "content": "Let me think"}
GEMINI = Wire(
    "gemini.live",
    SCRIPTS,
    {
        **COMMON,
        "image": [Call("stop", HI_THERE, input=user(text(HELLO), PICTURE))],
        "reasoning": [Call("stop", [THOUGHT, *HI_THERE])],
        "schema": [Call("stop", [text('{"city":"Oslo"}')], more={a.GEN_AI_OUTPUT_TYPE: "json"})],
        "tools": with_tools("Oslo"),
        "parallel": with_tools("Oslo", "Rome"),
        "refusal": [Call("content_filter", pieces=False)],
        "invalid": [Call("", [], "1007", whole=False, pieces=False)],
        "failed": [Call("error", HI, "UNAVAILABLE", whole=False)],
        "going away": [Call("error", HI, "1001", whole=False)],
        "no object": [Call("error", HI, "malformed_response", whole=False)],
        "wrong shape": [LEFT],
        "unknown": [LEFT],
        "large": [Call("stop", [text(f"Hi{'!' * 900_000} there")])],
        "huge": [Call("error", HI, "websockets.exceptions.PayloadTooBig", whole=False)],
        "interrupted": [Call("interrupted", HI), Call("stop", YES, input=user(text("Stop")))],
        "resumed": [LEFT, Call("stop", HI_THERE)],
    },
    {a.GEN_AI_OPERATION_NAME: "generate_content", a.GEN_AI_CONVERSATION_ID: "live-1"},
    {},
    USED,
    user(text(HELLO)),
)
