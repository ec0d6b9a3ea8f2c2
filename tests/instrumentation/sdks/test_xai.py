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

from playhead_semconv.wire.xai import schema
from playhead_semconv.wire.xai.protobuf import Schema, read

PROGRAM = Path(xai.__file__)
SAID = [{"type": "text", "content": "Hi there"}]
THOUGHT = {"type": "reasoning", "content": "Let me think"}
CALL = {"type": "tool_call", "id": "c-1", "name": "weather", "arguments": {"city": "Oslo"}}


@pytest.fixture(scope="module", params=["strict", "exchanges"])
def recorded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Home:
    folder = tmp_path_factory.mktemp("xai")
    home = Home(folder, {"XAI_SDK_DISABLE_TRACING": "1"})
    with xai_server(str(APART)) as target:
        done = home.playhead("record", "--level", request.param, PROGRAM, target, APART)
    assert (done.returncode, done.stdout) == (0, xai.PRINTED), done.stderr
    home.playhead("rederive")
    return home


def test_calls_of_the_sdk_mean_something(recorded: Home):
    shown: Any = json.loads(recorded.playhead("show", "last", "--json").stdout)
    steps = shown["steps"]
    assert [step["name"] for step in steps] == ["chat grok-4"] * 8
    (run,) = recorded.runs()
    assert (run["steps"], run["models"]) == (8, ["grok-4-x", "grok-4"])
    assert (run["input_tokens"], run["output_tokens"]) == (72, 30)
    whole: Any = [
        json.loads(recorded.playhead("show", f"last:{number}", "--json").stdout)
        for number in range(1, 9)
    ]
    said = [one["output_messages"][0]["parts"] for one in whole if one["output_messages"]]
    cut = [THOUGHT, {"type": "text", "content": "Hi"}]
    assert said == [SAID, [THOUGHT, *SAID], [CALL], SAID, cut, SAID, [THOUGHT, *SAID]]
    at = [one["attributes"] for one in whole]
    reasons = [one.get("gen_ai.response.finish_reasons", [""])[0] for one in at]
    assert reasons == ["stop", "stop", "tool_call", "stop", "", "error", "stop", "stop"]
    assert {one["gen_ai.provider.name"] for one in at} == {"x_ai"}
    streamed = [one.get("gen_ai.request.stream", False) for one in at]
    assert streamed == [False, True, False, False, False, True, False, True]
    assert at[0]["gen_ai.request.temperature"] == 0.7
    assert at[0]["gen_ai.usage.cache_read.input_tokens"] == 4
    assert [one["error"] for one in whole if one["error"]] == [
        "grpc.RpcError: INVALID_ARGUMENT: No",
        "grpc.RpcError: UNAVAILABLE: gone",
    ]
    assert [one["name"] for one in whole[2]["tool_definitions"]] == ["weather"]
    assert whole[3]["input_messages"][0]["parts"][1] == {
        "type": "uri",
        "modality": "image",
        "uri": "https://x.test/a.png",
        "detail": "low",
    }


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
