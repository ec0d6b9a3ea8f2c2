"""xAI over gRPC, through the real SDK: what its bytes mean, and that it replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.home import Home
from support.sdk_table import APART
from support.sdks import xai
from support.xai_server import xai_server

from playhead_semconv.genai.messages import to_json
from playhead_semconv.wire.xai import schema
from playhead_semconv.wire.xai.protobuf import Schema, read

PROGRAM = Path(xai.__file__)
SAID = [{"type": "text", "content": "Hi there"}]
THOUGHT = {"type": "reasoning", "content": "Let me think"}
CALL = {"type": "tool_call", "id": "c-1", "name": "weather", "arguments": {"city": "Oslo"}}


@pytest.fixture(
    scope="module", params=["exchanges", pytest.param("strict", marks=pytest.mark.acceptance)]
)
def recorded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Home:
    folder = tmp_path_factory.mktemp("xai")
    home = Home(folder, {"XAI_SDK_DISABLE_TRACING": "1"})
    with xai_server(str(APART)) as target:
        done = home.playhead("record", "--level", request.param, PROGRAM, target, APART)
    assert (done.returncode, done.stdout) == (0, xai.PRINTED), done.stderr
    home.playhead("rederive")
    return home


CUT = [THOUGHT, {"type": "text", "content": "Hi"}]
BOTH = [CALL, {**CALL, "id": "c-2", "arguments": {"city": "Rome"}}]
MADE = [{"type": "uri", "modality": "image", "uri": "https://x.test/made.png"}]
STREAMED = [THOUGHT, *SAID]
CITY = [{"type": "text", "content": '{"city":"Oslo"}'}]
CHAT = "chat grok-4"
STEPS: list[tuple[str, bool, str, list[Any]]] = [
    (CHAT, False, "stop", SAID),
    (CHAT, True, "stop", STREAMED),
    (CHAT, False, "tool_call", [CALL]),
    (CHAT, False, "stop", SAID),
    (CHAT, False, "", []),
    (CHAT, True, "error", CUT),
    (CHAT, True, "tool_call", BOTH),
    (CHAT, False, "stop", CITY),
    (CHAT, False, "", []),
    (CHAT, False, "", []),
    (CHAT, True, "error", [THOUGHT]),
    (CHAT, False, "", []),
    ("fetch_response", False, "", []),
    ("fetch_response", False, "stop", SAID),
    ("generate_content grok-imagine", False, "", MADE),
    (CHAT, False, "stop", SAID),
    (CHAT, True, "stop", STREAMED),
    (CHAT, True, "error", [THOUGHT]),
]
"""Name, whether streamed, why it ended, what it said; in the order of the program."""
ERRORS = {
    5: "grpc.RpcError: INVALID_ARGUMENT: No",
    6: "grpc.RpcError: UNAVAILABLE: gone",
    9: "grpc.RpcError: INTERNAL: broken",
    10: "grpc.RpcError: DEADLINE_EXCEEDED: Deadline Exceeded",
    18: "grpc.FutureCancelledError: Locally cancelled by application!",
}
"""By step."""


def test_calls_of_the_sdk_mean_something(recorded: Home):
    (run,) = recorded.runs()
    assert (run["steps"], run["models"]) == (len(STEPS), ["grok-4-x", "grok-4", "grok-imagine-x"])
    assert (run["input_tokens"], run["output_tokens"]) == (120, 50)
    run = recorded.run("last")
    told: list[Any] = []
    for step in run.steps:
        at, (message, *_) = step.span.attributes, [*run.messages(step).output, None]
        parts = json.loads(to_json([message]))[0]["parts"] if message else []
        (reason,) = at.get("gen_ai.response.finish_reasons", [""])
        told.append((step.span.name, at.get("gen_ai.request.stream", False), reason, parts))
        assert at["gen_ai.provider.name"] == "x_ai"
    assert told == STEPS
    first, tools, looked, schema = (run.steps[number] for number in (0, 2, 3, 7))
    assert first.span.attributes["gen_ai.request.temperature"] == 0.7
    assert first.span.attributes["gen_ai.usage.cache_read.input_tokens"] == 4
    assert schema.span.attributes["gen_ai.output.type"] == "json"
    assert [one.name for one in run.messages(tools).tools] == ["weather"]
    (asked,) = json.loads(to_json(run.messages(looked).input))
    shown = {"type": "uri", "modality": "image", "uri": "https://x.test/a.png", "detail": "low"}
    assert asked["parts"][1] == shown


def test_calls_that_fail_say_why(recorded: Home):
    shown: Any = json.loads(recorded.playhead("show", "last", "--json").stdout)
    said = {step["number"]: step["error"] for step in shown["steps"] if step["error"]}
    assert said == ERRORS


def test_it_replays_with_the_server_gone(recorded: Home):
    status, report = recorded.report("last")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])


def descriptors() -> dict[str, Any]:
    from xai_sdk.proto import chat_pb2, image_pb2, usage_pb2

    return {
        "FUNCTION_CALL": chat_pb2.FunctionCall,
        "TOOL_CALL": chat_pb2.ToolCall,
        "IMAGE": image_pb2.ImageUrlContent,
        "FILE": chat_pb2.FileContent,
        "CONTENT": chat_pb2.Content,
        "MESSAGE": chat_pb2.Message,
        "FUNCTION": chat_pb2.Function,
        "MCP": chat_pb2.MCP,
        "TOOL": chat_pb2.Tool,
        "FORMAT": chat_pb2.ResponseFormat,
        "REQUEST": chat_pb2.GetCompletionsRequest,
        "USAGE": usage_pb2.SamplingUsage,
        "SPOKEN": chat_pb2.CompletionMessage,
        "OUTPUT": chat_pb2.CompletionOutput,
        "OUTPUT_CHUNK": chat_pb2.CompletionOutputChunk,
        "RESPONSE": chat_pb2.GetChatCompletionResponse,
        "CHUNK": chat_pb2.GetChatCompletionChunk,
        "DEFERRED": chat_pb2.GetDeferredCompletionResponse,
        "IMAGES_REQUEST": image_pb2.GenerateImageRequest,
        "GENERATED": image_pb2.GeneratedImage,
        "IMAGES": image_pb2.ImageResponse,
    }


def test_the_table_says_what_the_sdk_says():
    known = descriptors()
    declared = {name: one for name, one in vars(schema).items() if isinstance(one, Schema)}
    assert declared.keys() == known.keys()
    for name, one in declared.items():
        theirs = known[name].DESCRIPTOR.fields_by_number
        ours = {number: (field.name, field.many) for number, field in one.fields.items()}
        assert ours == {number: (theirs[number].name, theirs[number].is_repeated) for number in ours}, (
            name
        )


@pytest.mark.parametrize(
    "data", [b"\x0a", b"\x0a\xff", b"\xff" * 11, b"\x0b", b"\x08\x01", b"\x0a\x01\x08"]
)
def test_bytes_that_are_no_message(data: bytes):
    with pytest.raises(ValueError):
        read(data, schema.REQUEST)
