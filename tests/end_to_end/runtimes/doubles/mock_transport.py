"""httpx and httpx2 over transports that answer by themselves, sync and async, streamed and not."""

import asyncio
import gzip
import sys

import httpx
import httpx2

PACKED = gzip.compress(b"packed")


def program(library):
    def answer(request):
        if request.url.path == "/packed":
            return library.Response(200, content=PACKED, headers={"content-encoding": "gzip"})
        if request.url.path == "/gone":
            raise library.ConnectError("not there", request=request)
        return library.Response(200, json={"path": request.url.path})

    transport = library.MockTransport(answer)
    with library.Client(transport=transport, base_url="http://double") as client:
        print(client.get("/one").json(), client.get("/packed").text)
        with client.stream("GET", "/two") as response:
            print([*response.iter_bytes()])
        try:
            client.get("/gone")
        except library.ConnectError as error:
            print(repr(error))

    async def main():
        async with library.AsyncClient(transport=transport, base_url="http://double") as client:
            answers = await asyncio.gather(*(client.get(f"/{number}") for number in range(5)))
            print([one.json() for one in answers])
            async with client.stream("GET", "/packed") as response:
                print([piece async for piece in response.aiter_bytes()])

    asyncio.run(main())

    def application(environ, start_response):
        start_response("200 OK", [("content-type", "text/plain")])
        return [b"from an application"]

    with library.Client(transport=library.WSGITransport(app=application)) as client:
        print(client.get("http://double/").text)


for library in (httpx, httpx2):
    program(library)
sys.exit(3)
