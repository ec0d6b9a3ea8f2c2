"""An agent that keeps something open while it asks a model: a server, a channel, a socket, a child."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager

import httpx

KIND, WHERE, TOOL = sys.argv[1:]
PLACE = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
STEPS = 4


@asynccontextmanager
async def mcp_session():
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async def told(progress, total, message):
        print("progress", progress, total)

    server = StdioServerParameters(
        command=sys.executable, args=[WHERE], env={"TRACE": os.environ["TRACE"]}
    )
    opened = streamable_http_client(WHERE) if KIND == "http" else stdio_client(server)
    async with opened as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        print(sorted(tool.name for tool in (await session.list_tools()).tools))

        async def use(name, **arguments):
            result = await session.call_tool(name, arguments, progress_callback=told)
            return result.content[0].text

        yield use


@asynccontextmanager
async def grpc_channel():
    import grpc

    async with grpc.aio.insecure_channel(WHERE) as channel, grpc.aio.insecure_channel(WHERE) as other:

        async def use(name, number=0):
            ask = (channel if number % 2 else other).unary_unary("/test.Service/Ask")
            return (await ask(f"{name} {number}".encode())).decode()

        yield use


@asynccontextmanager
async def blocking_channel():
    import grpc

    with grpc.insecure_channel(WHERE) as channel:
        ask = channel.unary_unary("/test.Service/Ask")

        async def use(name, number=0):
            question = f"{name} {number}".encode()
            return (ask.future(question).result() if number % 2 else ask(question)).decode()

        yield use


@asynccontextmanager
async def grpc_stream():
    import grpc

    async with grpc.aio.insecure_channel(WHERE) as channel:
        listed = channel.unary_stream("/test.Service/List")(TOOL.encode())

        async def use(name, number=0):
            return (await listed.read()).decode()

        yield use


@asynccontextmanager
async def blocking_stream():
    import grpc

    with grpc.insecure_channel(WHERE) as channel:
        listed = channel.unary_stream("/test.Service/List")(TOOL.encode())

        async def use(name, number=0):
            return next(listed).decode()

        yield use


@asynccontextmanager
async def websocket():
    from websockets.asyncio.client import connect

    async with connect(WHERE, open_timeout=60) as socket:

        async def use(name, number=0):
            await socket.send(f"{name} {number}".encode())
            return (await socket.recv()).decode()

        yield use


@asynccontextmanager
async def blocking_websocket():
    from websockets.sync.client import connect

    with connect(WHERE, open_timeout=60) as socket:

        async def use(name, number=0):
            socket.send(f"{name} {number}".encode())
            return socket.recv().decode()

        yield use


@asynccontextmanager
async def child():
    counting = 'n=0; while read line; do n=$((n+1)); echo "$n:$line"; done'
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("sh", "-c", counting, stdin=pipe, stdout=pipe)

    async def use(name, number=0):
        process.stdin.write(f"{name} {number}\n".encode())
        return (await process.stdout.readline()).decode().strip()

    yield use
    process.stdin.close()
    await process.wait()


OTHERS = {
    "child": child,
    "grpc": blocking_channel,
    "grpc.aio": grpc_channel,
    "grpc.stream": blocking_stream,
    "grpc.aio.stream": grpc_stream,
    "websocket": websocket,
    "websocket.sync": blocking_websocket,
}


async def main():
    opened = OTHERS.get(KIND, mcp_session)
    async with opened() as use, httpx.AsyncClient(timeout=60) as client:
        for number in range(STEPS):
            found = await use(TOOL, number=number)
            asked = {"model": "gpt-5.5", "messages": [{"role": "user", "content": found}]}
            answered = (await client.post(PLACE, json=asked)).json()
            print(number, found, answered["choices"][0]["message"]["content"], flush=True)
        print(await use(TOOL, number=STEPS))


asyncio.run(main())
