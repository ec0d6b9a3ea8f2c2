"""An event loop that runs inside itself."""

import asyncio
import sys

import nest_asyncio

nest_asyncio.apply()


async def inner(number):
    await asyncio.sleep(0.01)
    return number


async def outer():
    return asyncio.run(inner(5)) + await inner(1)


print(asyncio.run(outer()))
sys.exit(3)
