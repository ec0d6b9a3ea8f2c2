"""Runs of several processes: forks and children wait as well, and MCP servers are asked later."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.outside.controlling import on_stage, said_back
from support.servers.mcp_programs import SERVER

FORKS = f"""
{ASKING}
child = os.fork()
if not child:
    print(asked("I am the child"), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(asked("I am the parent"), flush=True)
"""

STARTS = f"""
import subprocess, sys
{ASKING}
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
who = "the child" if len(sys.argv) > 1 else "the parent"
print(asked(f"I am {{who}}"), flush=True)
"""


@pytest.mark.parametrize("script", [FORKS, STARTS], ids=["fork", "child"])
def test_a_process_of_the_run_waits_like_the_first(tmp_path: Path, script: str):
    with on_stage(tmp_path) as stage:
        stage.provider.script([said_back], repeat=True)
        agent = stage.start(stage.script(script), control="pause model=*")
        for who in ("the child", "the parent"):
            (waits,) = stage.operator.halted("agent-1")
            assert who in waits["body"]
            change = [{"path": "messages[0].content", "value": f"edited, {who}"}]
            stage.operator.order("agent-1", "edit", halt=waits["id"], edits=change)
            stage.operator.order("agent-1", "continue", halt=waits["id"])
        said = stage.ended(agent).splitlines()
        assert said == ["You said edited, the child", "You said edited, the parent"]
        status, report = stage.home.report("agent-1")
        assert (status, report["verdict"]) == (0, "identical")


MCP = """
    import asyncio, os, sys
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def main():
        server = StdioServerParameters(
            command=sys.executable, args=[sys.argv[1]], env={"TRACE": os.devnull}
        )
        with open(os.devnull, "w") as nothing:
            async with stdio_client(server, errlog=nothing) as (read, write):
                async with ClientSession(read, write) as session:
                    await session.initialize()
                    print((await session.call_tool("order", {"number": 81})).content[0].text)
                    try:
                        await session.call_tool("order", {"number": 82})
                    except Exception as error:
                        print(type(error).__name__, error.what)
                    print((await session.call_tool("order", {"number": 83})).content[0].text)

    asyncio.run(main())
"""


@pytest.mark.parametrize("level", [pytest.param("exchanges", marks=pytest.mark.acceptance), "strict"])
def test_tools_of_an_mcp_server_are_edited_and_rejected(tmp_path: Path, level: str):
    with on_stage(tmp_path) as stage:
        agent = stage.start(stage.script(MCP), SERVER, control="pause tool=order", PLAYHEAD_LEVEL=level)
        (waits,) = stage.operator.halted("agent-1")
        assert (waits["kind"], waits["key"]) == ("mcp", "tools/call order")
        change = [{"path": "params.arguments.number", "value": 7}]
        stage.operator.order("agent-1", "edit", edits=change)
        by_hand = stage.operator.post("agent-1", "answer", body="{}")
        assert by_hand.status_code == 422
        assert "cannot be answered by hand" in by_hand.json()["detail"]
        stage.operator.order("agent-1", "continue")
        stage.operator.halted("agent-1")
        stage.operator.order("agent-1", "reject", message="not this one")
        stage.operator.halted("agent-1")
        stage.operator.order("agent-1", "continue")
        first, second, third = stage.ended(agent).splitlines()
        assert first.startswith("order 7, ")
        assert second == "AskRejected not this one"
        assert third.startswith("order 83, ")
        status, report = stage.home.report("agent-1")
        assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])
