"""Tasks of anyio over asyncio, then over trio."""

import sys

import anyio


async def child(number, ended, before, after):
    await anyio.sleep(0.01)
    await before.wait()
    ended.append(number)
    after.set()


async def main():
    ended, events = [], [anyio.Event() for _ in range(4)]
    async with anyio.create_task_group() as group:
        for number in reversed(range(3)):
            group.start_soon(child, number, ended, events[number], events[number + 1])
        events[0].set()
    print(ended)
    print(await anyio.to_thread.run_sync(lambda: "from a thread"))
    with anyio.move_on_after(0.01):
        await anyio.sleep(5)


for backend in ("asyncio", "trio"):
    anyio.run(main, backend=backend)
sys.exit(3)
