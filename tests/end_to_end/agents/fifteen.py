"""Fifteen steps, each through another boundary. Prints one line a step."""

import asyncio
import ctypes
import datetime
import hashlib
import json
import os
import random
import subprocess
import sys
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import httpx
from openai import AsyncOpenAI, OpenAI

TOOLS = os.environ["TOOLS_URL"]
MODEL = "gpt-5.5"
sys.setswitchinterval(1e-5)
_libc = ctypes.CDLL(None)


def noise() -> None:
    """Run up to 2 ms later than one would have; no boundary sees it."""
    drawn = ctypes.c_uint16()
    _libc.getrandom(ctypes.byref(drawn), 2, 0)
    _libc.usleep(drawn.value // 32)


def step(number: int, *found: object) -> None:
    noise()
    print(number, *found)


def prompt(text: str) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}]}


def said(answer) -> str:
    return answer.choices[0].message.content


def streamed(client: OpenAI) -> str:
    text = ""
    for chunk in client.chat.completions.create(**prompt("Tell me a story."), stream=True):
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
    return text


async def ask(client: AsyncOpenAI, text: str, seen: list[str]) -> str:
    answer = said(await client.chat.completions.create(**prompt(text)))
    noise()
    seen.append(answer)
    return answer


async def asynchronous() -> None:
    async with AsyncOpenAI() as client:
        seen: list[str] = []
        found = await asyncio.gather(*(ask(client, f"Question {n}", seen) for n in range(6)))
        step(3, found, seen)
        seen = []
        found = await asyncio.gather(*(ask(client, "The same question", seen) for _ in range(6)))
        step(4, found, seen)


async def by_aiohttp() -> object:
    async with aiohttp.ClientSession() as session, session.get(f"{TOOLS}/tool?of=aiohttp") as answer:
        return await answer.json()


def pooled(client: OpenAI) -> None:
    seen: list[str] = []

    def one(text: str) -> str:
        answer = said(client.chat.completions.create(**prompt(text)))
        noise()
        seen.append(answer)
        return answer

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one, [f"Pooled {n % 3}" for n in range(8)]))
    step(5, found, seen)


def main() -> None:
    client = OpenAI()
    step(1, said(client.chat.completions.create(**prompt("Hello"))))
    step(2, streamed(client))
    asyncio.run(asynchronous())
    pooled(client)
    step(6, uuid.uuid4())
    step(7, time.time())
    step(8, random.random(), random.sample(range(1000), 5))
    step(9, datetime.datetime.now(), datetime.date.today())
    step(10, os.urandom(8).hex())
    step(11, httpx.get(f"{TOOLS}/tool", params={"of": "httpx"}, timeout=60).json())
    with urllib.request.urlopen(f"{TOOLS}/tool?of=urllib") as answer:
        step(12, json.load(answer))
    step(13, asyncio.run(by_aiohttp()))
    step(
        14,
        subprocess.run(["sh", "-c", "date +%N; echo $$"], capture_output=True, text=True).stdout.split(),
    )
    with open("diary.txt", "a") as diary:
        diary.write(f"{uuid.uuid4()}\n")
    with open("diary.txt", "rb") as diary:
        step(15, hashlib.sha256(diary.read()).hexdigest())
    print(said(client.chat.completions.create(**prompt(f"Sum up what {uuid.uuid4()} did."))))


main()
