"""The program of `agents.py`: an agent on the SDK, one on LangGraph, the examples, or a service.

Prints seconds of its own work, without the import of the SDKs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path

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


def graph() -> Callable[[], None]:
    """The LangGraph agent."""
    import agents_graph

    return agents_graph.work


def examples() -> Callable[[], None]:
    """The example agents, one after the other, as they are."""
    import anthropic  # noqa: F401  imported before the clock runs, like openai

    folder = Path(__file__).parents[1] / "examples"
    os.environ |= {name: os.environ["EXAMPLES_URL"] for name in ("ANTHROPIC_BASE_URL", "TOOLS_URL")}
    os.environ |= {"OPENAI_BASE_URL": os.environ["EXAMPLES_URL"] + "/v1", "ANTHROPIC_API_KEY": "test"}

    def work() -> None:
        for name in ("weather", "research", "refund", "search"):
            sys.argv = [name]
            # The last one gets stuck and says so.
            with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(RuntimeError):
                runpy.run_path(str(folder / f"{name}_agent.py"), run_name="__main__")

    return work


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
        prepared = {"graph": graph, "examples": examples}.get(sys.argv[1])
        plain = {"conversation": conversation, "streams": streams, "bursts": bursts}
        work = prepared() if prepared else plain[sys.argv[1]]
        begin = time.perf_counter()
        work()
        print(time.perf_counter() - begin)
