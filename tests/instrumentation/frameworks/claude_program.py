"""What programs do with the Claude Agent SDK: each part prints what it did."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

import playhead


@playhead.tool
def charge(order: int) -> str:
    return f"charged {order}"


@tool("charge", "Charge an order.", {"order": int})
async def charge_order(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": charge(arguments["order"])}]}


OPTIONS = ClaudeAgentOptions(
    cli_path=os.path.abspath("claude"),
    mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[charge_order])},
)


async def one_prompt(prompt: str) -> list[str]:
    kinds: list[str] = []
    async for message in query(prompt=prompt, options=OPTIONS):
        kinds.append(
            str(message.result) if isinstance(message, ResultMessage) else type(message).__name__
        )
    return kinds


async def conversation() -> list[str]:
    said: list[str] = []
    async with ClaudeSDKClient(OPTIONS) as client:
        for prompt in ("again", "fail"):
            await client.query(prompt)
            said += [
                str(message.result)
                async for message in client.receive_response()
                if isinstance(message, ResultMessage)
            ]
    return said


async def dies() -> str:
    try:
        await one_prompt("die")
    except Exception as error:
        return type(error).__name__
    return "it lives"


async def main() -> None:
    print(await one_prompt("refund"))
    print(await conversation())
    print(await dies())


asyncio.run(main())
