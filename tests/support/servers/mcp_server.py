"""An MCP server: on stdio, or, given a port, over streamable HTTP."""

import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations


def traced(what: str) -> None:
    """Write a line to where the test that started the server reads it."""
    if "TRACE" in os.environ:
        with open(os.environ["TRACE"], "a") as trace:
            trace.write(f"{what}\n")


traced("started")

server = MCPServer("shop")
calls = 0


@server.tool()
async def order(number: int) -> str:
    """Looks an order up."""
    global calls
    calls += 1
    if number > 90:
        raise ValueError(f"no order {number}")
    return f"order {number}, call {calls}, {os.urandom(4).hex()}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def look(number: int) -> str:
    """Looks an order up, and says that this changes nothing."""
    global calls
    calls += 1
    traced(f"look {number}")
    return f"order {number}, call {calls}, {os.urandom(4).hex()}"


@server.tool()
async def slow(count: int, ctx: Context) -> str:
    """Says how far it is."""
    for step in range(count):
        await ctx.report_progress(step, count)
    return f"counted {count} {os.urandom(4).hex()}"


@server.resource("shop://hours")
def hours() -> str:
    """When it is open."""
    return f"always {os.urandom(4).hex()}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
