"""unittest.mock in the place of what libraries send with."""

import asyncio
import sys
from unittest import mock

import httpx
import requests

with mock.patch("requests.sessions.Session.send", autospec=True) as send:
    send.return_value = mock.Mock(status_code=200, text="mocked", is_redirect=False, history=[])
    print(requests.get("http://double/").text, send.call_count)
with mock.patch.object(httpx.Client, "send", return_value=httpx.Response(200, text="mocked")) as send:
    print(httpx.get("http://double/").text, send.call_count)
with mock.patch.object(httpx.HTTPTransport, "handle_request", return_value=httpx.Response(201)) as send:
    print(httpx.get("http://double/").status_code, send.call_count)


async def main():
    answer = mock.AsyncMock(return_value=httpx.Response(202, text="mocked"))
    with mock.patch.object(httpx.AsyncHTTPTransport, "handle_async_request", answer):
        async with httpx.AsyncClient() as client:
            print((await client.get("http://double/")).status_code, answer.await_count)


asyncio.run(main())
sys.exit(3)
