"""Three drafts of one question, asked at the same moment, then the essence of them.

Shows the async client, identical concurrent requests with different answers, and the stream helper.
"""

import asyncio
import sys

from anthropic import AsyncAnthropic

MODEL = "claude-sonnet-5-5"


async def draft(client: AsyncAnthropic, question: str) -> str:
    message = await client.messages.create(
        model=MODEL, max_tokens=200, messages=[{"role": "user", "content": question}]
    )
    return message.content[0].text


async def main(question: str) -> None:
    async with AsyncAnthropic() as client:
        drafts = await asyncio.gather(*(draft(client, question) for _ in range(3)))
        for number, text in enumerate(drafts, 1):
            print(f"draft {number}: {text}")

        asked = "Give the essence of these drafts in one sentence.\n" + "\n".join(drafts)
        async with client.messages.stream(
            model=MODEL,
            max_tokens=2000,
            thinking={"type": "enabled", "budget_tokens": 1024},
            messages=[{"role": "user", "content": asked}],
        ) as stream:
            async for text in stream.text_stream:
                print(text, end="", flush=True)
        print()


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Why do aeroplanes carry a flight recorder?"))
