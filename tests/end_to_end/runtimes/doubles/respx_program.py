"""respx in the place of transports: sync, async, errors, and what was called."""

import asyncio
import sys

import httpx
import respx

with respx.mock(base_url="http://double") as router:
    router.get("/one").mock(return_value=httpx.Response(200, json={"one": 1}))
    router.get("/two").mock(side_effect=[httpx.Response(503), httpx.Response(200, text="then")])
    router.get("/gone").mock(side_effect=httpx.ConnectTimeout)
    print([httpx.get("http://double/one").json() for _ in range(3)])
    print([httpx.get("http://double/two").status_code for _ in range(2)])
    try:
        httpx.get("http://double/gone")
    except httpx.ConnectTimeout as error:
        print(type(error).__name__)

    async def main():
        async with httpx.AsyncClient(base_url="http://double") as client:
            answers = await asyncio.gather(*(client.get("/one") for _ in range(4)))
            print([one.json() for one in answers])

    asyncio.run(main())
    print([(call.request.method, str(call.request.url)) for call in router.calls])
    print(len(router.calls))
sys.exit(3)
