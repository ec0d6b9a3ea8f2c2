"""MCP clients: a real server on stdio and over streamable HTTP."""

import functools

import pytest
from support.observed.again import recorded, replayed
from support.servers.mcp_programs import SERVER, over_http
from support.starting.programs import Program, attributes

from playhead_core.facts import Fidelity
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a

AGENT = """
import asyncio, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def told(progress, total, message):
    print("progress", progress, total)

async def use(session):
    await session.initialize()
    print(sorted(tool.name for tool in (await session.list_tools()).tools))
    print((await session.call_tool("order", {"number": 81})).content[0].text)
    calls = [session.call_tool("order", {"number": 1}) for _ in range(6)]
    print([one.content[0].text for one in await asyncio.gather(*calls)])
    counted = await session.call_tool("slow", {"count": 3}, progress_callback=told)
    print(counted.content[0].text)
    print((await session.call_tool("order", {"number": 99})).content[0].text)
    print((await session.read_resource("shop://hours")).contents[0].text)
"""

STDIO = (
    AGENT
    + """
async def main():
    server = StdioServerParameters(
        command=sys.executable, args=[sys.argv[1]], env={"TRACE": sys.argv[2]}
    )
    with open(os.devnull, "w") as nothing:
        async with stdio_client(server, errlog=nothing) as (read, write):
            async with ClientSession(read, write) as session:
                await use(session)

asyncio.run(main())
"""
)

HTTP = (
    AGENT
    + """
from mcp.client.streamable_http import streamable_http_client

async def main():
    async with streamable_http_client(sys.argv[1]) as (read, write, *_):
        async with ClientSession(read, write) as session:
            await use(session)

asyncio.run(main())
"""
)


@pytest.fixture(scope="module")
def on_stdio(tmp_path_factory):
    """By level, once: the folder of a program, how its recording ended, and its tape."""

    @functools.cache
    def made(level):
        folder = tmp_path_factory.mktemp(level)
        program = Program.of(folder, STDIO, PYTHONHASHSEED="0")
        return folder, *recorded(program, str(SERVER), str(folder / "trace"), level=level)

    return made


@pytest.mark.parametrize("level", ["strict", pytest.param("causal", marks=pytest.mark.acceptance)])
def test_a_server_on_stdio_is_answered_from_the_tape(on_stdio, level):
    folder, done, tape = on_stdio(level)
    trace = folder / "trace"
    arguments = (str(SERVER), str(trace))
    assert done.returncode == 0, done.stderr
    assert trace.read_text() == "started\n"
    program = Program.of(folder, STDIO, PYTHONHASHSEED="0")
    again, now = replayed(program, tape, arguments=arguments)
    assert again.stdout == done.stdout, again.stderr
    assert trace.read_text() == "started\n"
    report = compare(tape, now)
    assert report.verdict == "identical", "\n".join(report.lines())
    assert set(report.boundaries) == {"mcp"}
    keys = [one.ask.key for one in tape.exchanges().values()]
    assert keys.count("tools/call order") == 8
    assert keys[0].endswith("mcp_server.py") and "resources/read shop://hours" in keys


def test_a_changed_argument_is_refused(on_stdio):
    folder, _, tape = on_stdio("strict")
    arguments = (str(SERVER), str(folder / "trace"))
    program = Program.of(folder, STDIO.replace('"number": 81', '"number": 82'), PYTHONHASHSEED="0")
    again, now = replayed(program, tape, arguments=arguments)
    assert again.returncode == 1
    report = compare(tape, now)
    assert report.exit_code == 3
    blocked = next(one for one in report.divergences if one.kind == "blocked")
    assert blocked.what.endswith("tools/call order") and blocked.difference is not None
    assert blocked.difference.path == "$.params.arguments.number"
    assert (blocked.difference.tape, blocked.difference.now) == ("81", "82")


def test_a_server_that_is_not_there_is_not_there_again(tmp_path):
    source = STDIO.replace("sys.executable", "'/no/such/server'") + "\n"
    arguments = (str(SERVER), str(tmp_path / "trace"))
    program = Program.of(tmp_path, source, PYTHONHASHSEED="0")
    done, tape = recorded(program, *arguments)
    assert done.returncode == 1 and "FileNotFoundError" in done.stderr
    again, _ = replayed(program, tape, arguments=arguments)
    assert again.returncode == 1 and "FileNotFoundError" in again.stderr


def test_a_tool_call_has_a_span(tmp_path):
    program = Program.of(tmp_path, STDIO)
    try:
        done = program.recorded(str(SERVER), str(tmp_path / "trace"))
        assert done.returncode == 0, done.stderr
        spans = [span for span in program.spans() if span.name.startswith("tools/call")]
    finally:
        program.close()
    assert [span.name for span in spans].count("tools/call order") == 8
    found = attributes(spans[0])
    assert found[a.MCP_METHOD_NAME] == "tools/call"
    assert found[a.GEN_AI_OPERATION_NAME] == "execute_tool"
    assert found[a.GEN_AI_TOOL_NAME] == "order"
    assert found[a.GEN_AI_TOOL_CALL_ARGUMENTS] == '{"number": 81}'
    assert "order 81, call 1" in found[a.GEN_AI_TOOL_CALL_RESULT]
    failed = [attributes(span).get(a.ERROR_TYPE) for span in spans]
    assert failed.count("tool_error") == 1


def test_a_server_over_http_is_answered_from_the_tape(tmp_path):
    program = Program.of(tmp_path, HTTP, PYTHONHASHSEED="0")
    with over_http() as url:
        done, tape = recorded(program, url, level="strict")
    assert done.returncode == 0, done.stderr
    again, now = replayed(program, tape, arguments=(url,))
    assert again.stdout == done.stdout, again.stderr
    report = compare(tape, now)
    assert set(report.boundaries) == {"http"}
    assert report.count(Fidelity.BLOCKED) == 0, "\n".join(report.lines())
    assert report.verdict == "identical", "\n".join(report.lines())
