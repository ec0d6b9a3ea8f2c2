"""Agents in eight topologies, and an MCP server: each asks others in its own way, with its own names."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import httpx
from agents import Agent, Runner, set_trace_processors
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from opentelemetry import trace

import playhead

set_trace_processors([])  # the SDK's own would post to its vendor


def agent(name: str, *tools: Agent, to: tuple[Agent, ...] = ()) -> Agent:
    """Return an agent whose tools are other agents, and that hands over to some."""
    return Agent(
        name=name,
        instructions=name,
        model="gpt-4o",
        tools=[one.as_tool(f"ask_{one.name}", "Ask it.") for one in tools],
        handoffs=list(to),
    )


writer = agent("writer")
critic = agent("critic", to=(writer,))
writer.handoffs = [critic]
AGENTS = (
    agent("chain_1", to=(agent("chain_2", to=(agent("chain_3"),)),)),
    agent("triage", to=(agent("billing"), agent("refunds"))),
    agent("supervisor", agent("worker_1"), agent("worker_2")),
    agent("lead", agent("search_1"), agent("search_2"), agent("search_3")),
    writer,
    agent("asker", agent("helper")),
)


async def ask_server() -> None:
    """Call a tool of an MCP server."""
    parameters = StdioServerParameters(command=sys.executable, args=["server.py"], env=dict(os.environ))
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        await session.call_tool("look_up", {"order": 7})


async def main() -> None:
    for one in AGENTS:
        await Runner.run(one, "go")
    named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "starter"}
    with trace.get_tracer("own").start_as_current_span("invoke_agent starter", attributes=named):
        playhead.message("child", "question", "how many?")
        subprocess.run([sys.executable, "child.py"], check=True)
        httpx.post(f"{os.environ['BACK_URL']}/check", json={"number": 3}).raise_for_status()
        httpx.post(f"{os.environ['BACK_URL']}/nothing")
        await ask_server()
        playhead.message("archive", "status_update", "done")


asyncio.run(main())
