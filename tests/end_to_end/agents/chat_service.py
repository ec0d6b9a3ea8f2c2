"""A service that asks a model: whole answers, streamed ones, work in threads and left behind."""

import asyncio
import contextlib
import os
import random
import time
import uuid

from fastapi import BackgroundTasks, FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI, OpenAI

BOOTED = os.urandom(4).hex()


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.client = AsyncOpenAI()
    app.state.since = time.time()
    app.state.free = asyncio.Semaphore(4)
    yield
    print("closing")
    await app.state.client.close()


app = FastAPI(lifespan=lifespan)


def asked(text: str) -> dict:
    return {"model": "gpt-5.5", "messages": [{"role": "user", "content": text}]}


@app.post("/guarded")
async def guarded(request: Request):
    if request.headers.get("authorization") != "Bearer the-right-one-5":
        raise HTTPException(403)
    return (await request.app.state.client.chat.completions.create(**asked("Who am I?"))).model


@app.post("/chat")
async def chat(request: Request, background: BackgroundTasks):
    state, question = request.app.state, (await request.json())["text"]
    print("asked:", question)
    async with state.free:
        first, second = await asyncio.gather(
            state.client.chat.completions.create(**asked(question)),
            state.client.chat.completions.create(**asked(f"{question} {uuid.uuid4()}")),
        )
    background.add_task(print, "told:", question)
    return {
        "answers": [first.choices[0].message.content, second.choices[0].message.content],
        "booted": [BOOTED, state.since],
        "luck": [random.random(), random.choice("abcdef")],
        "at": time.time(),
        "id": str(uuid.uuid4()),
    }


@app.post("/stream")
async def stream(request: Request):
    state, question = request.app.state, (await request.json())["text"]

    async def pieces():
        async with await state.client.chat.completions.create(**asked(question), stream=True) as answer:
            async for chunk in answer:
                if chunk.choices:
                    await asyncio.sleep(0.001)
                    yield f"data: {chunk.choices[0].delta.content} {uuid.uuid4()}\n\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


@app.post("/thread")
def in_a_thread(question: dict):
    answer = OpenAI().chat.completions.create(**asked(question["text"]))
    return {"answer": answer.choices[0].message.content, "id": str(uuid.uuid4())}


@app.post("/upload")
async def upload(request: Request):
    size = 0
    async for piece in request.stream():
        size += len(piece)
        print("piece", len(piece))
    return {"size": size}


@app.get("/endless")
async def endless():
    async def pieces():
        number = 0
        while True:
            yield f"{number} {'.' * 4096}\n"
            number += 1
            await asyncio.sleep(0)

    return StreamingResponse(pieces())


@app.get("/broken")
async def broken(how: str):
    raise ValueError(f"broken {how}")
