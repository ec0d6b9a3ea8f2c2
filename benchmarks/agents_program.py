"""The program of `agents.py`: an agent in three variants, or a service.

Prints seconds of its own work.
"""

from __future__ import annotations

import asyncio
import sys
import time

import openai
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

TURNS = 10
AT_ONCE = 20


def conversation() -> None:
    """Sequential calls, each with the whole history."""
    client = openai.OpenAI()
    messages: list[dict[str, str]] = [{"role": "system", "content": "Be brief. " * 50}]
    for turn in range(TURNS):
        messages.append({"role": "user", "content": f"question {turn}"})
        got = client.chat.completions.create(model="gpt-4o", messages=messages)  # type: ignore[arg-type]
        messages.append({"role": "assistant", "content": got.choices[0].message.content or ""})


def bursts() -> None:
    """Like `streams`, with each answer sent at once."""
    streams("gpt-4o-at-once")


def streams(model: str = "gpt-4o") -> None:
    """Many concurrent streams, in rounds."""

    async def one(client: openai.AsyncOpenAI, number: int) -> None:
        said = [{"role": "user", "content": f"question {number}"}]
        parts = await client.chat.completions.create(model=model, messages=said, stream=True)  # type: ignore[call-overload]
        async for _ in parts:
            pass

    async def main() -> None:
        async with openai.AsyncOpenAI() as client:
            for turn in range(TURNS // 2):
                await asyncio.gather(*(one(client, turn * AT_ONCE + n) for n in range(AT_ONCE)))

    asyncio.run(main())


_client: list[openai.AsyncOpenAI] = []


async def ask(request: Request) -> JSONResponse:
    """Serve one request: one call of the model."""
    if not _client:
        _client.append(openai.AsyncOpenAI())
    asked = await request.json()
    said = [{"role": "user", "content": str(asked["text"])}]
    got = await _client[0].chat.completions.create(model="gpt-4o", messages=said)  # type: ignore[arg-type]
    return JSONResponse({"text": got.choices[0].message.content})


app = Starlette(routes=[Route("/ask", ask, methods=["POST"])])

if __name__ == "__main__":
    if sys.argv[1] == "service":
        import uvicorn

        uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
    else:
        work = {"conversation": conversation, "streams": streams, "bursts": bursts}[sys.argv[1]]
        begin = time.perf_counter()
        work()
        print(time.perf_counter() - begin)
