"""xAI over gRPC, through the real SDK: what its calls mean, its bytes, and that it replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.answers.sdk_expected import read as read_attributes
from support.answers.sdk_table import APART
from support.answers.xai_expected import CASES, INPUT_TOKENS, OUTPUT_TOKENS, PRINTED, XAI, calls
from support.long import long
from support.sdks import program
from support.servers.scripted_grpc import GrpcReply, ScriptedGrpc
from support.starting.home import Home

from playhead_genai.messages import to_json
from playhead_genai.providers.xai import schema
from playhead_genai.providers.xai.protobuf import Schema, read
from playhead_semconv import attributes as a

PROGRAM = Path(program.__file__)
TESTS = PROGRAM.parents[2]
VARYING = (a.PLAYHEAD_EXCHANGE_ID, a.PLAYHEAD_EXCHANGE_REF)


class Recorded(NamedTuple):
    """A recording, and what the server got and was to send."""

    home: Home
    level: str
    port: int
    requests: list[bytes]
    replies: list[GrpcReply]


def record(folder: Path, level: str, cases: tuple[str, ...], **environ: str) -> Recorded:
    """Record the cases; the server is gone afterwards."""
    from support.answers.xai_answers import replies

    home, answers = Home(folder, {}), [one for case in cases for one in replies(case)]
    home.environ.update(environ)
    home.bare.update(environ)
    words = ("record", "--level", level, PROGRAM)
    with ScriptedGrpc() as server:
        server.script(answers)
        done = home.playhead(*words, server.target, APART, XAI.adapter, *cases)
    assert done.returncode == 0, done.stderr
    told = [line for line in PRINTED.splitlines() if line.partition(": ")[0] in cases]
    assert done.stdout.splitlines() == told
    home.playhead("rederive")
    return Recorded(home, level, server.port, server.requests, answers)


@pytest.fixture(
    scope="module", params=["exchanges", pytest.param("strict", marks=pytest.mark.acceptance)]
)
def recorded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Recorded:
    folder = tmp_path_factory.mktemp("xai")
    return record(folder, request.param, CASES, XAI_SDK_DISABLE_TRACING="1")


def test_each_call_says_what_it_was(recorded: Recorded):
    run = recorded.home.run("last")
    wanted = [(case, call) for case in CASES for call in calls(case)]
    for step, (case, call) in zip(run.steps, wanted, strict=True):
        span, messages = step.span, run.messages(step)
        content = {a.GEN_AI_INPUT_MESSAGES: messages.input, a.GEN_AI_OUTPUT_MESSAGES: messages.output}
        content |= {a.GEN_AI_TOOL_DEFINITIONS: messages.tools}
        derived = {name: to_json(value) for name, value in content.items() if value}
        said = read_attributes(span.attributes | derived)
        for name in VARYING:
            assert said.pop(name)
        took_s = ((span.ended_ns or 0) - span.started_ns) / 1e9
        if call.streamed:
            assert 0 < said.pop(a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK) <= took_s
        (exchange,) = run.exchanges_of(step)
        exact = call.attributes(recorded.port, len(exchange.chunks))
        assert as_json(said) == as_json(exact), case
        assert span.failed is bool(call.error), case
        assert span.status_message.startswith(call.error), case
    (row,) = recorded.home.runs()
    assert (row["steps"], row["models"], row["tools"]) == (len(wanted), ["m-1"], ["weather"])
    assert (row["input_tokens"], row["output_tokens"]) == (INPUT_TOKENS, OUTPUT_TOKENS)


def as_json(attributes: dict[str, Any]) -> Any:
    return json.loads(json.dumps(attributes))


def test_each_message_is_on_the_tape_as_it_was(recorded: Recorded):
    run = recorded.home.run("last")
    got, sent = iter(recorded.requests), iter(recorded.replies)
    for step, call in zip(run.steps, (call for case in CASES for call in calls(case)), strict=True):
        (exchange,) = run.exchanges_of(step)
        for _ in range(call.sends):
            assert next(got) == exchange.request, call
            reply = next(sent)
        assert [chunk.data for chunk in exchange.chunks] == reply.sent, call
    assert (list(got), list(sent)) == ([], [])


def test_it_replays_with_the_server_gone(recorded: Recorded):
    status, report = recorded.home.report("last")
    assert report["divergences"] == []
    assert (status, report["verdict"], report["level"]) == (0, "identical", recorded.level)
    assert report["fidelity"]["exact"] == report["asked"]


@pytest.mark.acceptance
def test_spans_of_the_sdk_change_no_step(tmp_path: Path):
    cases = ("plain", "stream", "tools", "refused", "async", "cancelled", "deferred")
    home = record(tmp_path, "exchanges", cases).home
    (row,) = home.runs()
    wanted = [call for case in cases for call in calls(case)]
    assert (row["steps"], row["input_tokens"], row["output_tokens"]) == (len(wanted), 60, 25)
    for step, call in zip(home.run("last").steps, wanted, strict=True):
        exact = call.attributes(0, 0)
        for name in (a.GEN_AI_PROVIDER_NAME, a.GEN_AI_RESPONSE_FINISH_REASONS):
            assert as_json(step.span.attributes).get(name) == as_json(exact).get(name), call
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")


SPENDING = """
import asyncio, sys
target, *folders = sys.argv[1:]
sys.path += folders
from support.sdks.xai import Xai
import playhead

@playhead.tool
def look():
    return "looked"

xai = Xai(target)
for asked in (xai.ask, lambda: asyncio.run(xai.aask()), lambda: "".join(xai.stream())):
    print(asked())
    try:
        print(look())
    except Exception as problem:
        print(problem.what)
"""


@pytest.mark.parametrize(
    "limit", ["tokens>50", pytest.param("cost>0.0002", marks=pytest.mark.acceptance)]
)
def test_a_limit_counts_its_calls(tmp_path: Path, limit: str):
    from support.answers.xai_answers import replies

    home, script = Home(tmp_path, {"PLAYHEAD_CONTROL": f"stop {limit}"}), tmp_path / "spending.py"
    home.environ["XAI_SDK_DISABLE_TRACING"] = home.bare["XAI_SDK_DISABLE_TRACING"] = "1"
    script.write_text(SPENDING)
    home.environ["PLAYHEAD_PRICES"] = str(tmp_path / "prices.toml")
    (tmp_path / "prices.toml").write_text('[[price]]\nmodel = "m-1"\ninput = 2\noutput = 10\n')
    words = ("record", "--level", "exchanges", script)
    with ScriptedGrpc() as server:
        server.script([*replies("plain"), *replies("async"), *replies("stream")])
        done = home.playhead(*words, server.target, APART, TESTS)
    looked = ["Hi there", "looked"]
    assert done.stdout.splitlines() == [*looked, *looked, "Hi there", f"the rule stop {limit} applies"]
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")


STOPPED = """
import asyncio, sys
target, *folders = sys.argv[1:]
sys.path += folders
from support.sdks.xai import Xai

xai = Xai(target)
for asked in (xai.ask, lambda: asyncio.run(xai.aask()), lambda: "".join(xai.stream())):
    try:
        print(asked())
    except Exception as problem:
        print(type(problem).__name__, problem.code().name, problem.details())
"""


@pytest.mark.parametrize(
    ("level", "rule", "count"),
    [
        ("exchanges", "model=m-*", 0),
        long("strict", "model=m-*", 0),
        *(long(level, "model=gpt-*", 3) for level in ("exchanges", "strict")),
        *(long(level, "steps>1", 1) for level in ("exchanges", "strict")),
    ],
)
def test_a_rule_stops_its_calls_before_they_go_out(tmp_path: Path, level: str, rule: str, count: int):
    """``count``: of calls that go out."""
    from support.answers.xai_answers import replies

    home, script = Home(tmp_path, {"PLAYHEAD_CONTROL": f"stop {rule}"}), tmp_path / "stopped.py"
    home.environ["XAI_SDK_DISABLE_TRACING"] = home.bare["XAI_SDK_DISABLE_TRACING"] = "1"
    script.write_text(STOPPED)
    with ScriptedGrpc() as server:
        server.script([*replies("plain"), *replies("async"), *replies("stream")][:count])
        done = home.playhead("record", "--level", level, script, server.target, APART, TESTS)
        assert len(server.requests) == count
    errors = ("_InactiveRpcError", "AioRpcError", "_MultiThreadedRendezvous")
    said = [f"{error} PERMISSION_DENIED the rule stop {rule} applies" for error in errors]
    assert done.stdout.splitlines() == ["Hi there"] * count + said[count:]
    status, report = home.report("last")
    assert (status, report["verdict"], report["level"]) == (0, "identical", level)


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
