"""vcrpy records requests, httpx and urllib, then answers them with the server gone."""

import asyncio
import sys
import tempfile
import urllib.request

import aiohttp
import httpx
import requests
import vcr
from served import serve

server, url = serve()


async def over_aiohttp():
    async with aiohttp.ClientSession() as session, session.get(f"{url}/aiohttp") as response:
        return await response.text()


async def over_httpx():
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}/async")).text


def ask():
    return [
        requests.get(f"{url}/requests").text,
        httpx.get(f"{url}/httpx").text,
        urllib.request.urlopen(f"{url}/urllib").read(),
        asyncio.run(over_httpx()),
        asyncio.run(over_aiohttp()),
    ]


with tempfile.TemporaryDirectory() as folder:
    with vcr.use_cassette(f"{folder}/cassette.yaml"):
        print(ask())
    server.shutdown()
    server.server_close()
    with vcr.use_cassette(f"{folder}/cassette.yaml", record_mode="none") as cassette:
        print(ask(), cassette.all_played)
sys.exit(3)
