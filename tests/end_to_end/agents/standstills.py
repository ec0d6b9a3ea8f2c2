"""Agents that stand still, each in another way: ``standstills.py SITUATION``."""

import asyncio
import ctypes
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import openai
import requests

import playhead

SITUATIONS: dict[str, Callable[[], object]] = {}
HELLO: Any = [{"role": "user", "content": "What is the refund policy?"}]
CHAT: Any = {"model": "gpt-4o", "messages": HELLO}
CLAUDE: Any = {"model": "claude-sonnet-5", "max_tokens": 99, "messages": HELLO}
OPENAI, CLAUDE_URL = os.environ["OPENAI_BASE_URL"], os.environ["ANTHROPIC_BASE_URL"]
HELD = f"{CLAUDE_URL}/held"
"""An address that never answers."""


def situation(function: Callable[[], object]) -> Callable[[], object]:
    SITUATIONS[function.__name__] = function
    return function


def wait(**_: Any) -> str:
    threading.Event().wait()
    return "never"


def work(search: Callable[..., Any] = wait) -> None:
    """The model calls ``search_docs`` once."""
    client = openai.OpenAI(max_retries=0)
    tool: Any = {"type": "function", "function": {"name": "search_docs"}}
    answer = client.chat.completions.create(**CHAT, tools=[tool])
    (call,) = answer.choices[0].message.tool_calls or ()
    said = {"role": "tool", "tool_call_id": call.id, "content": search()}
    history = [*HELLO, answer.choices[0].message.model_dump(exclude_none=True), said]
    client.chat.completions.create(model="gpt-4o", messages=history)


def in_claude(search: Callable[..., Any]) -> None:
    """The same with Claude."""
    tool: Any = {"name": "search_docs", "input_schema": {"type": "object"}}
    answer = anthropic.Anthropic(max_retries=0).messages.create(**CLAUDE, tools=[tool])
    assert answer.stop_reason == "tool_use"
    search()


def read(stream: Any) -> None:
    for _part in stream:
        pass


# -- a silent stream


@situation
def stream_chat() -> None:
    read(openai.OpenAI(max_retries=0).chat.completions.create(**CHAT, stream=True))


@situation
def stream_chat_async() -> None:
    async def reading() -> None:
        client = openai.AsyncOpenAI(max_retries=0)
        async for _part in await client.chat.completions.create(**CHAT, stream=True):
            pass

    asyncio.run(reading())


@situation
def stream_responses() -> None:
    read(openai.OpenAI(max_retries=0).responses.create(model="gpt-4o", input="hello", stream=True))


@situation
def stream_claude() -> None:
    read(anthropic.Anthropic(max_retries=0).messages.create(**CLAUDE, stream=True))


@situation
def stream_claude_async() -> None:
    async def reading() -> None:
        async with anthropic.AsyncAnthropic(max_retries=0).messages.stream(**CLAUDE) as stream:
            async for _part in stream:
                pass

    asyncio.run(reading())


@situation
def stream_httpx() -> None:
    url, asked = f"{OPENAI}/chat/completions", {**CHAT, "stream": True}
    with httpx.stream("POST", url, json=asked, timeout=None) as answer:
        read(answer.iter_lines())


@situation
def stream_requests() -> None:
    url = f"{CLAUDE_URL}/v1/messages"
    with requests.post(url, json={**CLAUDE, "stream": True}, stream=True, timeout=600) as answer:
        read(answer.iter_lines())


@situation
def stream_in_a_thread() -> None:
    thread = threading.Thread(target=stream_chat)
    thread.start()
    thread.join()


@situation
def stream_after_a_tool() -> None:
    work(lambda: "[]")
    stream_claude()


@situation
def stream_beside_another() -> None:
    async def both() -> None:
        async with openai.AsyncOpenAI(max_retries=0) as client:
            await asyncio.gather(
                client.chat.completions.create(model="gpt-4o", messages=[*HELLO, *HELLO]),
                asyncio.to_thread(stream_chat),
            )

    asyncio.run(both())


# -- a hung tool


@situation
def tool_function() -> None:
    work()


@situation
def tool_of_claude() -> None:
    in_claude(wait)


@situation
def tool_marked() -> None:
    @playhead.tool
    def search_docs() -> str:
        return wait()

    work(search_docs)


@situation
def tool_marked_async() -> None:
    @playhead.tool
    async def search_docs() -> str:
        await asyncio.Event().wait()
        return ""

    asyncio.run(search_docs())


@situation
def tool_request() -> None:
    work(lambda: httpx.get(HELD, timeout=None).text)


@situation
def tool_urllib() -> None:
    in_claude(lambda: urllib.request.urlopen(HELD).read())


@situation
def tool_marked_request() -> None:
    @playhead.tool
    def search_docs() -> str:
        return requests.get(HELD, timeout=600).text

    work(search_docs)


@situation
def tool_process() -> None:
    work(lambda: subprocess.run([sys.executable, "-c", "import threading; threading.Event().wait()"]))


@situation
def tool_in_a_thread() -> None:
    async def searching() -> str:
        return await asyncio.to_thread(wait)

    work(lambda: asyncio.run(searching()))


@situation
def tool_beside_another() -> None:
    @playhead.tool
    def fast() -> str:
        return "[]"

    @playhead.tool
    def search_docs() -> str:
        return wait()

    async def both() -> None:
        await asyncio.gather(asyncio.to_thread(fast), asyncio.to_thread(search_docs))

    asyncio.run(both())


# -- a person is waited for


@situation
def person_input() -> None:
    input("Your name? ")


@situation
def person_readline() -> None:
    work(lambda: "[]")
    sys.stdin.readline()


@situation
def person_lines() -> None:
    for line in sys.stdin:
        print(line)


@situation
def person_in_a_thread() -> None:
    async def asking() -> str:
        return await asyncio.to_thread(input)

    asyncio.run(asking())


@situation
def person_in_a_tool() -> None:
    work(lambda: input("May I search? "))


@situation
def person_in_a_tool_in_a_thread() -> None:
    async def asking() -> str:
        return await asyncio.to_thread(sys.stdin.readline)

    in_claude(lambda: asyncio.run(asking()))


@situation
def person_after_another_line() -> None:
    work(lambda: input("May I search? "))
    input("And now? ")


@situation
def person_before_a_tool() -> None:
    @playhead.tool
    def pay() -> str:
        return "paid"

    work(lambda: "[]")
    pay()  # a rule pauses it


@situation
def person_before_a_model() -> None:
    openai.OpenAI(max_retries=0).chat.completions.create(model="o9", messages=HELLO)  # so does another


@situation
def person_before_a_model_async() -> None:
    async def asking() -> None:
        client = anthropic.AsyncAnthropic(max_retries=0)
        await client.messages.create(**{**CLAUDE, "model": "o9"})

    asyncio.run(asking())


# -- a person is asked inside a marked tool


@situation
def asked_by_input() -> None:
    @playhead.tool
    def search_docs() -> str:
        return input("May I search? ")

    work(search_docs)


@situation
def asked_by_readline() -> None:
    @playhead.tool
    def search_docs() -> str:
        print("May I search?", flush=True)
        return sys.stdin.readline()

    in_claude(search_docs)


@situation
def asked_in_a_thread() -> None:
    @playhead.tool
    async def search_docs() -> str:
        return await asyncio.to_thread(input, "May I search? ")

    work(lambda: asyncio.run(search_docs()))


@situation
def asked_for_an_approval() -> None:
    @playhead.tool
    def search_docs() -> str:
        with playhead.phase("waiting", reason="approval"):
            return wait()

    work(search_docs)


@situation
def asked_in_a_step() -> None:
    with playhead.step("wait", "approval"):
        wait()


# -- a process that dies: of itself here, the others are killed


@situation
def dead_by_abort() -> None:
    work(lambda: "[]")
    os.abort()


@situation
def dead_by_fault() -> None:
    work(lambda: "[]")
    ctypes.string_at(0)


@situation
def dead_in_code() -> None:
    work(lambda: "[]")
    print(json.dumps("it computes"), flush=True)
    wait()


@situation
def dead_in_a_model() -> None:
    openai.OpenAI(max_retries=0).chat.completions.create(model="gpt-4o", messages=[*HELLO, *HELLO])


if __name__ == "__main__":
    name = sys.argv[1]
    SITUATIONS[name.removeprefix("killed_")]()
