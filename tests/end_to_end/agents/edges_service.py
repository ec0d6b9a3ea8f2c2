"""A service whose requests do not go smoothly: clients leave, bodies are cut, work is left behind."""

import asyncio
import contextlib
import os
import uuid

import httpx
from starlette.applications import Starlette
from starlette.background import BackgroundTasks
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute


@contextlib.asynccontextmanager
async def lifespan(app):
    async with httpx.AsyncClient(base_url=os.environ["OPENAI_BASE_URL"], timeout=60) as client:
        yield {"client": client, "booted": str(uuid.uuid4())}


async def ask(client, text):
    asked = {"model": "gpt-5.5", "messages": [{"role": "user", "content": text}]}
    answered = (await client.post("/chat/completions", json=asked)).json()
    return answered["choices"][0]["message"]["content"]


async def endless(request):
    async def pieces():
        number = 0
        while True:
            yield f"{number} {uuid.uuid4()} {'.' * 4096}\n"
            number += 1
            await asyncio.sleep(0)

    return StreamingResponse(pieces())


async def upload(request):
    size = 0
    async for piece in request.stream():
        size += len(piece)
    return JSONResponse({"size": size})


async def breaks(request):
    async def pieces():
        yield await ask(request.state.client, "first")
        raise ValueError("in the middle")

    return StreamingResponse(pieces())


async def behind(request):
    tasks = BackgroundTasks()

    async def told(text):
        print("told:", await ask(request.state.client, f"{text} {uuid.uuid4()}"))

    tasks.add_task(told, "one")
    tasks.add_task(told, "two")
    return JSONResponse({"booted": request.state.booted}, background=tasks)


async def talk(websocket):
    await websocket.accept(subprotocol="chat")
    async for text in websocket.iter_text():
        answer = await ask(websocket.state.client, text)
        await websocket.send_text(f"{answer} {uuid.uuid4()}")
        await websocket.send_bytes(b"\x00" + uuid.uuid4().bytes)


app = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/endless", endless),
        Route("/upload", upload, methods=["POST"]),
        Route("/breaks", breaks),
        Route("/behind", behind),
        WebSocketRoute("/talk", talk),
    ],
)
