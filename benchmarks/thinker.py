"""A provider in a process of its own that answers each chat after a delay, whole or streamed.

``thinker.py PORT examples``: the provider of the example agents, which thinks as long.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from playhead_cli.demo.provider import Provider

THINKS_S = 0.3
WORDS = 40
SAYS_S = 0.01
"""Seconds between the words of a stream, unless the model's name contains `AT_ONCE`."""
AT_ONCE = "at-once"
TOOL_CALLS = 8
"""If the model is offered a tool: how often it calls the first one before it answers."""


def completion(message: dict[str, object]) -> dict[str, object]:
    """A chat completion in OpenAI's format."""
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
    return {**head, "choices": [choice], "usage": usage}


def reply(asked: dict[str, Any]) -> dict[str, object]:
    """The message that answers a chat: a tool call as long as there were few, then a text."""
    called = sum(message["role"] == "tool" for message in asked["messages"])
    if not asked.get("tools") or called >= TOOL_CALLS:
        return {"content": "an answer " * 20}
    function = {"name": asked["tools"][0]["function"]["name"], "arguments": f'{{"query": "{called}"}}'}
    call = {"id": f"call_{called}", "type": "function", "function": function}
    return {"content": None, "tool_calls": [call]}


async def chat(request: Request) -> Response:
    """Wait, then answer."""
    asked = await request.json()
    await asyncio.sleep(THINKS_S)
    if not asked.get("stream"):
        return JSONResponse(completion(reply(asked)))

    pause_s = 0 if AT_ONCE in asked["model"] else SAYS_S

    async def events():
        for _ in range(WORDS):
            await asyncio.sleep(pause_s)
            choice = {"index": 0, "delta": {"content": "word "}, "finish_reason": None}
            head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
            yield f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])


def examples(port: int) -> None:
    """Serve the example agents until this process is stopped."""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with Provider(port, thinks_s=THINKS_S):
        signal.sigwait(signals)


if __name__ == "__main__":
    if sys.argv[2:] == ["examples"]:
        examples(int(sys.argv[1]))
    else:
        uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
