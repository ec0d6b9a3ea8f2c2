"""Calls of a model without end: in turns plain, streamed and left, in a task, in a thread, in a job.

Says, ten times, what it holds: memory of its own in KiB, open descriptors, objects.
"""

import asyncio
import gc
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai

CALLS = int(sys.argv[1])
WHOLE = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
        ],
    }
).encode()
CHUNK = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[]}\n\n'


class Answer(httpx.AsyncByteStream, httpx.SyncByteStream):
    def __init__(self, parts):
        self.parts = parts

    def __iter__(self):
        yield from self.parts

    async def __aiter__(self):
        for part in self.parts:
            yield part


def answer(request):
    streams = b'"stream":true' in request.content
    kind = "text/event-stream" if streams else "application/json"
    return httpx.Response(
        200, headers={"content-type": kind}, stream=Answer([CHUNK] * 4 if streams else [WHOLE])
    )


transport = httpx.MockTransport(answer)
client = openai.OpenAI(api_key="none", http_client=httpx.Client(transport=transport))
client_async = openai.AsyncOpenAI(api_key="none", http_client=httpx.AsyncClient(transport=transport))


def ask(number, chat=client.chat, **more):
    messages = [{"role": "user", "content": f"question {number}"}]
    return chat.completions.create(model="m", messages=messages, **more)


def leave(number):
    with ask(number, stream=True) as chunks:
        next(iter(chunks))


async def ask_in_task(number):
    await asyncio.create_task(ask(number, client_async.chat))


def in_thread(number):
    thread = threading.Thread(target=ask, args=(number,))
    thread.start()
    thread.join()


def held():
    gc.collect()
    with open("/proc/self/status") as file:
        own = next(line.split()[1] for line in file if line.startswith("RssAnon"))
    return [int(own), len(os.listdir("/proc/self/fd")), len(gc.get_objects())]


with ThreadPoolExecutor(1) as pool, asyncio.Runner() as runner:
    ways = [
        ask,
        leave,
        lambda number: runner.run(ask_in_task(number)),
        in_thread,
        lambda number: pool.submit(ask, number).result(),
    ]
    said = []
    for number in range(CALLS):
        if number % (CALLS // 10) == 0:
            said.append(held())
        ways[number % len(ways)](number)
    said.append(held())
print(json.dumps(said))
