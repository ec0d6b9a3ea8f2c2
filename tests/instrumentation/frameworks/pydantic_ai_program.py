"""What programs do with pydantic-ai: each part prints what it did."""

from __future__ import annotations

import asyncio
from typing import Any

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.models.openai import OpenAIChatModel

import playhead


class Refund(BaseModel):
    order: int
    accepted: bool


def agent(name: str, **more: Any) -> Agent[Any, Any]:
    return Agent(OpenAIChatModel("gpt-4o"), name=name, instructions=name, **more)


billing = agent("billing", output_type=Refund)
triage = agent("triage")
failing = agent("failing")
streaming = agent("streaming")
broken = agent("broken")


@billing.tool_plain
async def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


@triage.tool
async def ask_billing(ctx: RunContext[Any], order: int) -> str:
    """Ask the agent for bills."""
    result = await billing.run(f"refund {order}", conversation_id=ctx.conversation_id)
    return result.output.model_dump_json()


@failing.tool_plain(retries=2)
async def retried(order: int) -> str:
    """Work at the second time."""
    if order < 2:
        raise ModelRetry("try the next order")
    return f"done {order}"


@playhead.tool
def charged(order: int) -> str:
    return f"charged {order}"


@failing.tool_plain(name="charged")
def charge(order: int) -> str:
    """Charge an order."""
    return charged(order)


@streaming.tool_plain
def weather(city: str) -> str:
    """Say how the weather is."""
    return f"{city}: sun"


@broken.tool_plain
async def explode(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


async def delegated() -> object:
    """An agent asks another one, in the same conversation; that one calls two tools at once."""
    return (await triage.run("refund", conversation_id="conversation-7")).output


async def errors() -> object:
    """A tool asks for another try; another one is marked for the recording, too."""
    return (await failing.run("try", conversation_id="conversation-8")).output


async def failed() -> object:
    """A tool raises, and the run with it."""
    try:
        await broken.run("break", conversation_id="conversation-9")
    except ValueError as error:
        return str(error)
    return None


async def streamed() -> object:
    """The program calls a model between the parts of a stream, and after it."""
    client = AsyncOpenAI()

    async def ask(text: str) -> str:
        said: list[Any] = [{"role": "user", "content": text}]
        done = await client.chat.completions.create(model="gpt-4o", messages=said)
        return str(done.choices[0].message.content)

    async with streaming.run_stream("weather", conversation_id="conversation-10") as result:
        parts = [part async for part in result.stream_text(delta=True, debounce_by=None)]
        between = await ask("between")
    return ["".join(parts), between, await ask("after")]


async def concurrent() -> object:
    """Two runs at once."""
    runs = (streaming.run(text, conversation_id=text) for text in ("one", "two"))
    return [run.output for run in await asyncio.gather(*runs)]


async def main() -> None:
    for part in (delegated, errors, failed, streamed, concurrent):
        print(part.__name__, await part())


asyncio.run(main())
print("sync", streaming.run_sync("sync", conversation_id="conversation-11").output)
