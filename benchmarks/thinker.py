"""A provider in a process of its own that answers each chat after a delay, whole or streamed."""

from __future__ import annotations

import asyncio
import json
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

THINKS_S = 0.3
WORDS = 40
SAYS_S = 0.01
"""Seconds between the words of a stream, unless the model's name contains `AT_ONCE`."""
AT_ONCE = "at-once"


def completion(text: str) -> dict[str, object]:
    """A chat completion in OpenAI's format."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
    return {**head, "choices": [choice], "usage": usage}


async def chat(request: Request) -> Response:
    """Wait, then answer."""
    asked = await request.json()
    await asyncio.sleep(THINKS_S)
    if not asked.get("stream"):
        return JSONResponse(completion("an answer " * 20))

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

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
