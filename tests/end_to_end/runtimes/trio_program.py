"""Tasks of trio, a thread, a timeout, a request over httpx."""

import sys

import httpx
import trio


def answer(request):
    return httpx.Response(200, stream=httpx.ByteStream(b"answered"))


async def child(number, ended):
    await trio.sleep(0.05 * number)
    ended.append(number)


async def main():
    ended = []
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(child, number, ended)
    print(ended)
    print(await trio.to_thread.run_sync(lambda: "from a thread"))
    with trio.move_on_after(0.01):
        await trio.sleep(5)
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        print((await client.get("http://localhost/")).text)


trio.run(main)
sys.exit(3)
