"""The test client of Starlette: an application in a portal of anyio, and an ASGI transport."""

import asyncio
import sys

import httpx
from fastapi import FastAPI, WebSocket
from fastapi.testclient import TestClient

app = FastAPI()


@app.get("/{number}")
async def one(number: int):
    return {"number": number}


@app.get("/plain/{number}")
def plain(number: int):
    return {"plain": number}


@app.websocket("/talk")
async def talk(socket: WebSocket):
    await socket.accept()
    await socket.send_text((await socket.receive_text()) + "!")
    await socket.close()


with TestClient(app) as client:
    print(client.get("/1").json(), client.get("/plain/2").json())
    with client.websocket_connect("/talk") as socket:
        socket.send_text("hello")
        print(socket.receive_text())


async def main():
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://double") as client:
        print([one.json() for one in await asyncio.gather(*(client.get(f"/{n}") for n in range(4)))])


asyncio.run(main())
sys.exit(3)
