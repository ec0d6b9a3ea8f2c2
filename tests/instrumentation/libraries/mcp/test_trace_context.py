"""One trace over an MCP client and its recorded server, with a version of the SDK that has no spans."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starting.home import Home

from playhead_replay.run.spans import Span

SERVER = """
from mcp.server.fastmcp import FastMCP

server = FastMCP("shop")

@server.tool()
def order(number: int) -> str:
    return f"order {number}"

server.run("stdio")
"""

CLIENT = """
import asyncio, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.executable, args=["server.py"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        print(sorted(tool.name for tool in (await session.list_tools()).tools))
        print((await session.call_tool("order", {"number": 81})).content[0].text)

asyncio.run(main())
"""


def above(spans: list[Span], *names: str) -> Iterator[list[str]]:
    """Names of each span and of those around it, the outermost first."""
    for span in spans:
        yield [*names, span.name]
        yield from above(span.children, *names, span.name)


@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_client_and_server_are_one_tree(tmp_path: Path, level: str):
    home = Home(tmp_path, {"PYTHONPATH": str(Path(sys.prefix, "apart-mcp"))})
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "agent.py").write_text(CLIENT)
    done = home.playhead("record", "--level", level, "agent.py")
    assert (done.returncode, done.stdout) == (0, "['order']\norder 81\n"), done.stderr
    (run,) = home.runs()
    assert run["status"] == "success"
    paths = list(above(home.run("last").roots))
    assert ["tools/call order", "tools/call order"] in [path[-2:] for path in paths]
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical"), report["divergences"]
