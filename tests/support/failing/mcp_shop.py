"""An MCP server whose tools fail as they are told: on stdio, or, given a port, over streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

SAID = {
    "auth": "401 Unauthorized: the token has expired",
    "down": "connect ECONNREFUSED 10.0.0.7:5432",
    "slow": "the warehouse did not answer within 30 s",
    "broken": "no order 8127",
    "garbled": "invalid JSON: Expecting value: line 1 column 1",
}
"""The errors that a tool raises."""

server = MCPServer("shop")


@server.tool()
async def look_up(how: str) -> str:
    """Look an order up."""
    if how == "never":
        await asyncio.Event().wait()
    if how == "dies":
        os._exit(1)
    if how in SAID:
        raise ToolError(SAID[how])
    return "on its way"


@server.tool()
async def search_docs(query: str) -> str:
    """Search the manual."""
    if query == "AND (":
        raise ToolError("syntax error in query: unbalanced parenthesis")
    return "[]"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
