"""What programs do with the Claude Agent SDK beside turns: each part prints what it did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    UserMessage,
    query,
)


async def before_tool(about: Any, call: str | None, context: Any) -> dict[str, Any]:
    print("hook", about["tool_name"])
    return {"systemMessage": "look first"}


async def may(tool: str, arguments: dict[str, Any], context: Any) -> Any:
    print("may", tool, arguments)
    return PermissionResultAllow() if arguments["command"] == "ls" else PermissionResultDeny()


WARNED: list[str] = []

OPTIONS = ClaudeAgentOptions(
    hooks={"PreToolUse": [HookMatcher(hooks=[before_tool])]},
    can_use_tool=may,
    stderr=WARNED.append,
)


def said(message: Any) -> str:
    if isinstance(message, ResultMessage):
        return message.subtype
    if isinstance(message, AssistantMessage | UserMessage):
        blocks = message.content if isinstance(message.content, list) else []
        return " ".join(
            str(one.text if isinstance(one, TextBlock) else one.content)
            for one in blocks
            if isinstance(one, TextBlock | ToolResultBlock)
        )
    return type(message).__name__


async def prompts(answered: asyncio.Event) -> AsyncIterator[dict[str, Any]]:
    for prompt in ("again", "fail"):
        yield {"type": "user", "message": {"role": "user", "content": prompt}}
        await answered.wait()


async def stream() -> None:
    """Each prompt follows the answer to the one before."""
    answered = asyncio.Event()
    async for message in query(prompt=prompts(answered), options=ClaudeAgentOptions()):
        print(said(message))
        if isinstance(message, ResultMessage):
            answered.set()


async def callbacks() -> None:
    async with ClaudeSDKClient(OPTIONS) as client:
        await client.query("permit")
        print([said(one) async for one in client.receive_response()])
    print(WARNED)


async def interrupt() -> None:
    async with ClaudeSDKClient(ClaudeAgentOptions()) as client:
        await client.query("wait")
        async for message in client.receive_response():
            print(said(message))
            if said(message) == "I begin.":
                await client.interrupt()


async def leave() -> None:
    async with ClaudeSDKClient(ClaudeAgentOptions()) as client:
        await client.query("wait")
        async for message in client.receive_response():
            if said(message) == "I begin.":
                break
    print("left")


async def crash() -> None:
    async with ClaudeSDKClient(ClaudeAgentOptions()) as client:
        await client.query("crash")
        try:
            print([said(one) async for one in client.receive_response()])
        except Exception as error:
            print(type(error).__name__, error)
        try:
            await client.query("again")
        except Exception as error:
            print(type(error).__name__, error)


async def missing() -> None:
    options = ClaudeAgentOptions(cli_path="/nowhere/claude")
    try:
        async for _ in query(prompt="again", options=options):
            pass
    except Exception as error:
        print(type(error).__name__, error)


async def main() -> None:
    for part in (stream, callbacks, interrupt, leave, crash, missing):
        await part()


asyncio.run(main())
