"""Thirty steps, some at once: streams, an async tool that appends to a file."""

import asyncio
import random
import sys

from openai import AsyncOpenAI

import playhead

STEPS = int(sys.argv[1])


@playhead.tool(effect="write")
async def note(text: str) -> int:
    with open("notes.txt", "a") as file:
        file.write(f"{text}\n")
    await asyncio.sleep(0)
    with open("notes.txt") as file:
        return len(file.readlines())


async def ask(client: AsyncOpenAI, text: str) -> str:
    found = ""
    async for chunk in await client.chat.completions.create(
        model="gpt-5.5", messages=[{"role": "user", "content": text}], stream=True
    ):
        found += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    return found


async def main() -> None:
    async with AsyncOpenAI(max_retries=0) as client:
        with open("log.txt", "a") as log:
            for step in range(0, STEPS, 3):
                word = f"{random.random():.6f}"
                both = [ask(client, f"{step} {word}"), ask(client, f"{step + 1} {word}")]
                texts = await asyncio.gather(*both)
                async with asyncio.timeout(60):
                    lines = await note(f"note {step}")
                last = await ask(client, f"{step + 2} {' '.join(texts)}")
                log.write(f"{step} {texts} {lines} {last}\n")
                log.flush()
                print(step, last, flush=True)


asyncio.run(main())
