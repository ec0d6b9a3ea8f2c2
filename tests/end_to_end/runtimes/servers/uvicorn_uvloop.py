"""uvicorn over uvloop in a thread, asked by httpx."""

import asyncio
import sys
import threading
import time

import httpx
import uvicorn
import uvloop
from fastapi import FastAPI

app = FastAPI()


@app.get("/{number}")
async def one(number: int):
    await asyncio.sleep(0.01)
    return {"number": number}


server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", loop="uvloop"))
thread = threading.Thread(target=server.run)
thread.start()
while not server.started:
    time.sleep(0.01)
port = server.servers[0].sockets[0].getsockname()[1]


async def main():
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        answers = await asyncio.gather(*(client.get(f"/{number}") for number in range(5)))
        return [one.json() for one in answers]


print(uvloop.run(main()))
server.should_exit = True
thread.join()
sys.exit(3)
