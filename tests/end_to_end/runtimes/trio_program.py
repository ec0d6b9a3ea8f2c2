"""Tasks of trio, a thread, a timeout, a request over httpx."""

import sys

import httpx
import trio


def answer(request):
    return httpx.Response(200, stream=httpx.ByteStream(b"answered"))


async def child(number, ended, before, after):
    await trio.sleep(0.01)
    await before.wait()
    ended.append(number)
    after.set()


async def main():
    ended, events = [], [trio.Event() for _ in range(4)]
    async with trio.open_nursery() as nursery:
        for number in reversed(range(3)):
            nursery.start_soon(child, number, ended, events[number], events[number + 1])
        events[0].set()
    print(ended)
    print(await trio.to_thread.run_sync(lambda: "from a thread"))
    with trio.move_on_after(0.01):
        await trio.sleep(5)
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        print((await client.get("http://localhost/")).text)


trio.run(main)
sys.exit(3)
