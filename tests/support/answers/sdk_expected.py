"""What the span of a call says, exactly: by the SDK and the case of `support.answers.sdk_table`."""

from __future__ import annotations

import json
from typing import Any

from support.answers.sdk_table import BROKEN, HI, SAYS, STREAMED, WANTS, Sdk, as_tool
from support.sdks.cases import ABOUT, HELLO, MODEL, PIXEL, TOOL
from support.servers.scripted import Reply

from playhead_semconv import attributes as a

FAILED = ("refused", "failed", "timeout")
JSON = (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES, a.GEN_AI_TOOL_DEFINITIONS)
OF_THE_TAPE = (a.PLAYHEAD_EXCHANGE_REF, a.PLAYHEAD_RESTS_ON, a.PLAYHEAD_WIRE, a.PLAYHEAD_DERIVED)
"""Attributes that lead to the recorded bytes."""


def expected(sdk: Sdk, case: str, port: int) -> dict[str, Any]:
    """All attributes but those that `settled` takes out."""
    found = of_the_request(sdk, case, port)
    if case in FAILED:
        found[a.ERROR_TYPE] = sdk.errors[FAILED.index(case)]
    elif case in BROKEN and not (case == "malformed" and sdk.reads_on):
        found |= of_a_broken_stream(sdk, case)
    else:
        found |= of_the_answer(sdk, case)
        if case == "malformed":
            found[a.ERROR_TYPE] = "malformed_response"
    if case in STREAMED:
        found[a.GEN_AI_REQUEST_STREAM] = True
    return read(found)


def settled(attributes: dict[str, Any], sdk: Sdk, case: str, took_s: float) -> dict[str, Any]:
    """The attributes of a call of ``took_s`` seconds, with JSON decoded; those that vary are checked."""
    left = read(attributes)
    tape = {name: left.pop(name, None) for name in OF_THE_TAPE}
    assert tape[a.PLAYHEAD_WIRE] == sdk.wire
    if case in STREAMED:
        assert 0 < left.pop(a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK) <= took_s
    if case == "malformed":
        assert left.pop(a.PLAYHEAD_END_HOW, "abandoned") == "abandoned"
    if case == "cut":
        assert left.pop(a.ERROR_TYPE).endswith(("ProtocolError", "IncompleteRead"))
    return left


def whole(got: bytes, reply: Reply, sdk: Sdk, case: str) -> None:
    """What was recorded of an answer is all of it; where it broke off or was left, its beginning."""
    sent = b"".join(part for part in reply.parts if isinstance(part, bytes))
    part = case in BROKEN | {"timeout"} or (sdk.leaves and case in STREAMED)
    assert sent.startswith(got) if part else got == sent, case


def of_the_request(sdk: Sdk, case: str, port: int) -> dict[str, Any]:
    """Attributes that the request alone gives."""
    parts: list[Any] = [{"type": "text", "content": HELLO}]
    found: dict[str, Any] = {
        a.GEN_AI_OPERATION_NAME: sdk.operation,
        a.GEN_AI_REQUEST_MODEL: MODEL,
        a.SERVER_ADDRESS: "127.0.0.1",
        a.SERVER_PORT: port,
        **sdk.asks,
    }
    if sdk.provider:
        found[a.GEN_AI_PROVIDER_NAME] = sdk.provider
    if case == "image":
        parts.append({"type": "blob", **sdk.image, "modality": "image", "content": PIXEL})
    if WANTS.get(case) == "tools":
        found |= as_tool({"name": TOOL, "description": ABOUT})
    elif case == "schema":
        found |= sdk.schema
    return found | {a.GEN_AI_INPUT_MESSAGES: [{"role": "user", "parts": parts}]}


def of_the_answer(sdk: Sdk, case: str) -> dict[str, Any]:
    """Attributes that a whole answer gives."""
    said = SAYS.get(case, HI)
    message = {"role": "assistant", "parts": sdk.answers.parts(said)}
    found: dict[str, Any] = {
        **sdk.told,
        **sdk.whole,
        a.GEN_AI_USAGE_INPUT_TOKENS: 12,
        a.GEN_AI_USAGE_OUTPUT_TOKENS: 5,
        a.GEN_AI_RESPONSE_FINISH_REASONS: (sdk.answers.reason(said),),
        a.GEN_AI_OUTPUT_MESSAGES: [message],
    }
    if said.calls:
        found[a.PLAYHEAD_TOOL_CALLED] = (TOOL,) * len(said.calls)
    return found


def of_a_broken_stream(sdk: Sdk, case: str) -> dict[str, Any]:
    """Attributes after its first part."""
    found: dict[str, Any] = {**sdk.told, **sdk.first}
    if sdk.wire != "cohere.chat":
        found[a.GEN_AI_RESPONSE_FINISH_REASONS] = ("error",)
    errors = {"malformed": "malformed_response", "cancelled": "asyncio.exceptions.CancelledError"}
    if case in errors:
        found[a.ERROR_TYPE] = errors[case]
    elif case == "abandoned":
        found[a.PLAYHEAD_END_HOW] = "abandoned"
    return found


def read(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with those that are JSON decoded."""
    return {
        name: json.loads(value) if name in JSON and isinstance(value, str) else value
        for name, value in attributes.items()
    }
