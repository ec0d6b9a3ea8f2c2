"""Faults of tools that agents call over MCP and gRPC, and of a model over gRPC, with the real SDKs."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from support.failing.agents import Agent
from support.failing.tool_faults import Fault
from support.servers import ports
from support.servers.scripted import Gate, ScriptedServer
from support.servers.scripted_grpc import GrpcReply, ScriptedGrpc

SHOP = Path(__file__).with_name("mcp_shop.py")
Code = grpc.StatusCode
REMOTE_FAULTS: list[Fault] = []
ANSWER_S = 3.0
"""Seconds that a client waits for a tool that never answers."""


async def called(over: str, tool: str, timeout_s: float | None, arguments: dict[str, Any]) -> str:
    """Call a tool of the shop over MCP, as an agent does that raises what a tool says is an error."""
    async with AsyncExitStack() as stack:
        if over == "stdio":
            nothing = stack.enter_context(open(os.devnull, "w"))
            shop = StdioServerParameters(command=sys.executable, args=[str(SHOP)])
            streams: Any = await stack.enter_async_context(stdio_client(shop, errlog=nothing))
        else:
            port = ports.free()
            command = [sys.executable, str(SHOP), str(port)]
            serving = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            stack.callback(serving.communicate)
            stack.callback(serving.kill)
            assert serving.stderr is not None and any("running on" in line for line in serving.stderr)
            url = f"http://127.0.0.1:{port}/mcp"
            streams = await stack.enter_async_context(streamable_http_client(url))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await session.initialize()
        result: Any = await session.call_tool(tool, arguments, read_timeout_seconds=timeout_s)
        if result.is_error:
            raise RuntimeError(result.content[0].text)
        return result.content[0].text


def over_mcp(sdk: str, over: str, tool: str = "look_up", timeout_s: float | None = None) -> Any:
    """An agent whose tool is one of the shop's."""

    def program(server: ScriptedServer, **arguments: Any) -> None:
        agent = Agent(server, sdk)

        def remote(**given: Any) -> str:
            return asyncio.run(called(over, tool, timeout_s, given))

        tools: dict[str, Any] = {tool: remote}
        agent.work([(tool, arguments)], "I cannot.", **tools)

    return program


def over_grpc(
    code: grpc.StatusCode, details: str, tool: str = "look_up", gate: Gate | None = None
) -> Any:
    """An agent whose tool is a call over gRPC that ends with this status."""

    def program(server: ScriptedServer) -> None:
        with ScriptedGrpc() as shop:
            shop.script([GrpcReply([] if gate is None else [gate], code, details)])

            def remote(**_: Any) -> str:
                with grpc.insecure_channel(shop.target) as opened:
                    channel: Any = opened
                    call = channel.unary_unary("/shop.Orders/Find")
                    return call(b"8127", timeout=None if gate is None else ANSWER_S).decode()

            try:
                tools: dict[str, Any] = {tool: remote}
                Agent(server, "responses").work([(tool, {})], "I cannot.", **tools)
            finally:
                if gate is not None:
                    gate.open()

    return program


def grok(code: grpc.StatusCode, details: str) -> Any:
    """A call of xAI's model over gRPC that is refused."""

    def program(_: ScriptedServer) -> None:
        xai_sdk: Any = importlib.import_module("xai_sdk")  # installed in a folder of its own
        chat: Any = importlib.import_module("xai_sdk.chat")
        with ScriptedGrpc() as model:
            model.script([GrpcReply([], code, details)] * 6)
            client = xai_sdk.Client(
                api_key="k", api_host=model.target, use_insecure_channel=True, timeout=20
            )
            client.chat.create(model="grok-4", messages=[chat.user("Hello")]).sample()

    return program


for over, sdk, place in (("stdio", "chat", "2"), ("http", "messages", "3")):
    # Over HTTP the second step is the request that opens the session.
    look_up = over_mcp(sdk, over)
    for code, how in (
        ("auth_error", "auth"),
        ("connection_error", "down"),
        ("timeout", "slow"),
        ("api_error", "broken"),
        ("invalid_response", "garbled"),
    ):
        REMOTE_FAULTS.append(("tool", code, place, partial(look_up, how=how)))
    search = over_mcp(sdk, over, "search_docs")
    late = over_mcp(sdk, over, timeout_s=ANSWER_S)
    REMOTE_FAULTS[len(REMOTE_FAULTS) :] = [
        ("tool", "timeout", place, partial(late, how="never")),
        ("retrieval", "no_results", place, partial(search, query="refund")),
        ("retrieval", "invalid_query", place, partial(search, query="AND (")),
    ]
REMOTE_FAULTS.append(
    ("tool", "connection_error", "2", partial(over_mcp("responses", "stdio"), how="dies"))
)
for kind, code, status, details in (
    ("tool", "timeout", Code.DEADLINE_EXCEEDED, "the database is slow"),
    ("tool", "connection_error", Code.UNAVAILABLE, "connection refused"),
    ("tool", "auth_error", Code.UNAUTHENTICATED, "no token"),
    ("tool", "auth_error", Code.PERMISSION_DENIED, "not yours"),
    ("tool", "api_error", Code.INTERNAL, "null pointer"),
    ("tool", "api_error", Code.NOT_FOUND, "no order 8127"),
    ("retrieval", "invalid_query", Code.INVALID_ARGUMENT, "the filter is malformed"),
    ("retrieval", "timeout", Code.DEADLINE_EXCEEDED, ""),
    ("retrieval", "connection_error", Code.UNAVAILABLE, ""),
):
    tool = "search_docs" if kind == "retrieval" else "look_up"
    REMOTE_FAULTS.append((kind, code, "2", over_grpc(status, details, tool)))
REMOTE_FAULTS.append(("tool", "timeout", "2", over_grpc(Code.OK, "", gate=Gate())))
for code, status, details in (
    ("rate_limit", Code.RESOURCE_EXHAUSTED, "Too many requests per minute"),
    ("quota_exceeded", Code.RESOURCE_EXHAUSTED, "Your team has used all available credits"),
    ("auth_error", Code.UNAUTHENTICATED, "Incorrect API key provided"),
    ("timeout", Code.DEADLINE_EXCEEDED, "Deadline Exceeded"),
    ("connection_error", Code.UNAVAILABLE, "failed to connect to all addresses"),
    ("context_length_exceeded", Code.INVALID_ARGUMENT, "This model's maximum prompt length is 131072"),
):
    REMOTE_FAULTS.append(("model", code, "1", grok(status, details)))
