"""Tools are answered by `execute_tool` spans: marked functions, and those of a server of MCP."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from support.observed.asking import ASKING
from support.outside.controlling import on_stage, said_back
from support.starting.running import only_run, until

from playhead_cli.json_output.runs import PrintedSemanticReport
from playhead_genai.rebuilding.tools import RebuildableTool
from playhead_receiver.storage.spans.whole_spans import Deriver
from playhead_replay import Environment, ReplayConfiguration, Run
from playhead_replay.semantic import SemanticResult, command_of, replay_spans

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hello"}]}]',
    "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"Hi."}]}]',
}
ASKS = """
import openai
client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", max_retries=0, api_key="k")
said = [{"role": "user", "content": "Hello"}]
print(client.chat.completions.create(model="gpt-4o", messages=said).choices[0].message.content)
"""
WEATHER = """
import playhead

@playhead.tool
def weather(city, days=1):
    return "for real"

print(weather("Oslo"))
"""


def tool(name: str, arguments: Any, result: Any, **more: str) -> dict[str, str]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
        "gen_ai.tool.call.result": result if isinstance(result, str) else json.dumps(result),
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def run_of(*spans: dict[str, str]) -> Run:
    made: list[bytes] = []
    for number, attributes in enumerate([CHAT, *spans], 1):
        span = OtlpSpan(
            trace_id=bytes(15) + b"\x07",
            span_id=number.to_bytes(8, "big"),
            name=attributes.get("gen_ai.tool.name", "chat"),
            kind=OtlpSpan.SPAN_KIND_CLIENT,
            start_time_unix_nano=1_760_000_000_000_000_000 + number * 1000,
            end_time_unix_nano=1_760_000_000_000_000_500 + number * 1000,
            attributes=[
                KeyValue(key=key, value=AnyValue(string_value=value))
                for key, value in attributes.items()
            ],
        )
        made.append(ResourceSpans(scope_spans=[ScopeSpans(spans=[span])]).SerializeToString())
    return Run.of_tapes([], made, "agent-1")


def replay(folder: Path, run: Run, program: str) -> SemanticResult:
    (folder / "agent.py").write_text(program + ASKS)
    environ = {name: one for name, one in os.environ.items() if not name.startswith("OPENAI_")}
    around = Environment(python=sys.executable, folder=str(folder), environ=environ)
    return replay_spans(run, command_of("agent.py", str(folder)), ReplayConfiguration(around))


RECORDED = (
    ASKING
    + """
import playhead

@playhead.tool
def first(city):
    return {"sky": ("rain", city)}

@playhead.tool(effect="read")
def second():
    raise LookupError("away")

print(asked("Hello"), first("Oslo"))
try:
    second()
except LookupError as problem:
    print(problem)
"""
)


def test_the_spans_of_a_recording_answer_its_tools(tmp_path: Path):
    """A tool that failed runs again: a span has no exception."""
    with on_stage(tmp_path) as stage:
        stage.provider.script([said_back])
        script = stage.script(RECORDED)
        recorded = stage.home.playhead("record", str(script))
        assert recorded.returncode == 0, recorded.stderr
        store = stage.receiver.store
        until(lambda: only_run(store).status == "success", "the run has ended")
        trace_id = bytes.fromhex(only_run(store).trace_id)
        until(lambda: not list(store.pending(trace_id)), "its spans have arrived")
        until(lambda: any(one.wire for one in store.spans(trace_id)), "its request is known as a call")
        until(lambda: all(map(Deriver(store).is_whole, store.spans(trace_id))), "its facts are here")
        deriver = Deriver(store)
        spans = [deriver.whole(one) for one in store.spans(trace_id)]
    run = Run.of_tapes([], [one.SerializeToString() for one in spans], "agent-1")
    environ = {name: one for name, one in stage.home.environ.items() if not name.startswith("PLAYHEAD")}
    around = Environment(python=sys.executable, folder=str(script.parent), environ=environ)
    command = command_of("agent.py", str(script.parent))
    done = replay_spans(run, command, ReplayConfiguration(around))
    assert done.stdout.decode() == recorded.stdout, done.stderr.decode()
    assert [one.partition(" ")[2] for one in done.report.tools] == ["2 execute_tool first"]
    assert done.report.tools_run == ["second: no span has its result"]
    assert done.report.verdict == "semantic"


OURS = "playhead.exchange.id", "0000000000000001/tool/0"


@pytest.mark.parametrize("form", ["def", "async def"])
def test_a_marked_tool_is_answered_by_our_own_span(tmp_path: Path, form: str):
    """Its JSON is that of a value, whatever the function says that it returns."""
    program = WEATHER
    if form == "async def":
        program = WEATHER.replace("def weather", "async def weather")
        program = program.replace('weather("Oslo"))', '__import__("asyncio").run(weather("Oslo")))')
    values = {"$type": "tuple", "value": [4, "rain"]}
    spans = tool("weather", {"city": "Oslo", "days": 1}, values) | dict([OURS])
    done = replay(tmp_path, run_of(spans), program)
    assert done.stdout.decode() == "(4, 'rain')\nHi.\n", done.stderr.decode()
    assert (done.report.verdict, done.report.tools) == ("semantic", ["step 2 weather"])
    assert "answered from its span: step 2 weather" in done.report.lines()
    printed = done.report.to_json()
    assert msgspec.convert(printed, PrintedSemanticReport) == printed


def test_a_text_of_others_is_a_value_if_the_function_says_of_what_type(tmp_path: Path):
    span = tool("weather", {"city": "Oslo", "days": 1}, '{"sky":"rain"}')
    says = WEATHER.replace("days=1)", "days=1) -> {}")
    for returns, printed in (("str", '{"sky":"rain"}'), ("dict[str, str]", "{'sky': 'rain'}")):
        done = replay(tmp_path, run_of(span), says.replace("{}", returns))
        assert done.stdout.decode() == f"{printed}\nHi.\n", done.stderr.decode()
        assert done.report.tools == ["step 2 weather"]
    done = replay(tmp_path, run_of(span), WEATHER)
    assert done.stdout.decode() == "for real\nHi.\n"
    why = "its spans have other arguments, or do not say of what type the result is"
    assert done.report.tools_run == [f"weather: {why}"]
    assert f"ran for real: weather: {why}" in done.report.lines()


def test_a_tool_without_its_span_runs_for_real(tmp_path: Path):
    other = tool("weather", {"city": "Bergen", "days": 1}, "rain") | dict([OURS])
    failed = tool("weather", {"city": "Oslo", "days": 1}, '"snow"') | dict([OURS])
    run = run_of(other, failed)
    run.spans[-1].status = "error"
    done = replay(tmp_path, run, WEATHER)
    assert done.stdout.decode() == "for real\nHi.\n", done.stderr.decode()
    assert done.report.tools_run[0].startswith("weather: its spans have other arguments")
    assert replay(tmp_path, run_of(), WEATHER).report.tools_run == ["weather: no span has its result"]


def test_what_a_generator_yields_is_in_no_span(tmp_path: Path):
    program = """
import playhead

@playhead.tool
def count():
    yield 1
    yield 2

print(list(count()))
"""
    done = replay(tmp_path, run_of(tool("count", {}, "null") | dict([OURS])), program)
    assert done.stdout.decode() == "[1, 2]\nHi.\n", done.stderr.decode()


MCP = """
import asyncio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    async with stdio_client(StdioServerParameters(command="no-such-server", args=["x"])) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            await session.send_ping()
            print([one.name for one in (await session.list_tools()).tools])
            for city in ("Oslo", "Bergen"):
                answer = await session.call_tool("weather", {"city": city})
                print(answer.content[0].text)

asyncio.run(main())
"""


OVER_HTTP = (
    MCP.replace(
        "from mcp.client.stdio import stdio_client",
        "from mcp.client.streamable_http import streamable_http_client",
    )
    .replace(
        'stdio_client(StdioServerParameters(command="no-such-server", args=["x"]))',
        'streamable_http_client("http://127.0.0.1:9/mcp")',
    )
    .replace("ClientSession(*streams)", "ClientSession(*streams[:2])")
)


@pytest.mark.parametrize("program", [MCP, OVER_HTTP], ids=["stdio", "http"])
def test_a_server_of_mcp_is_answered_by_spans_and_not_started(tmp_path: Path, program: str):
    whole = {"content": [{"type": "text", "text": "rain"}], "isError": False}
    run = run_of(
        tool("weather", {"city": "Oslo"}, whole, mcp__method__name="tools/call"),
        tool("weather", {"city": "Bergen"}, "more rain", mcp__method__name="tools/call"),
        tool("local", {}, "no tool of a server"),
    )
    done = replay(tmp_path, run, program)
    assert done.stdout.decode() == "['weather']\nrain\nmore rain\nHi.\n", done.stderr.decode()
    assert done.report.tools == ["step 2 weather", "step 3 weather"]
    assert done.report.verdict == "semantic"
    [note] = [one for one in done.report.notes if one.startswith("made up of a server of MCP")]
    assert ("initialize" in note and "tools/list" in note) or "/mcp" in note


@pytest.mark.parametrize(("program", "key"), [(MCP, "tools/call weather"), (OVER_HTTP, "POST http")])
def test_a_call_of_a_server_that_no_span_has_is_refused(tmp_path: Path, program: str, key: str):
    span = tool("weather", {"city": "Oslo"}, "rain", mcp__method__name="tools/call")
    done = replay(tmp_path, run_of(span), program)
    assert done.report.verdict == "blocked"
    assert f"no span answers {key}" in done.report.refused[0]


@pytest.mark.parametrize(
    ("result", "returns", "kept"),
    [
        ("5", "int", b"5"),
        ("5", "float", b"5"),
        ("5", "str", b'"5"'),
        ('"5"', "str", b'"5"'),
        ("true", "int", None),
        ("true", "bool", b"true"),
        ("null", "None", b"null"),
        ("Weather(4)", "Weather", None),
        ("Weather(4)", "", None),
        ("[1]", "list", b"[1]"),
        ("[1]", "dict", None),
        ({"a": 1}, "dict", b'{"a":1}'),
    ],
)
def test_a_result_of_another_recorder_is_given_back_only_where_it_is_certain(
    result: Any, returns: str, kept: bytes | None
):
    assert RebuildableTool("t", {}, result, is_exact=False).returned(returns) == kept
