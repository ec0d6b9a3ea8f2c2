"""Tasks of anyio over asyncio, then over trio."""

import sys

import anyio


async def child(number, ended):
    await anyio.sleep(0.05 * number)
    ended.append(number)


async def main():
    ended = []
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(child, number, ended)
    print(ended)
    print(await anyio.to_thread.run_sync(lambda: "from a thread"))
    with anyio.move_on_after(0.01):
        await anyio.sleep(5)


for backend in ("asyncio", "trio"):
    anyio.run(main, backend=backend)
sys.exit(3)
