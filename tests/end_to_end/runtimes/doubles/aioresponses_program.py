"""aioresponses in the place of aiohttp's requests."""

import asyncio
import sys

import aiohttp
from aioresponses import aioresponses


async def main():
    with aioresponses() as double:
        double.get("http://double/one", payload={"one": 1}, repeat=True)
        double.get("http://double/gone", exception=aiohttp.ClientConnectionError("not there"))
        async with aiohttp.ClientSession() as session:

            async def one():
                async with session.get("http://double/one") as response:
                    return await response.json()

            print(await asyncio.gather(*(one() for _ in range(5))))
            try:
                await session.get("http://double/gone")
            except aiohttp.ClientConnectionError as error:
                print(repr(error))


asyncio.run(main())
sys.exit(3)
