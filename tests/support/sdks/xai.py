"""xai-sdk: ``TARGET FOLDER``, where the SDK lies in FOLDER."""

import asyncio
import json
import sys
from datetime import timedelta

from pydantic import BaseModel

TOOL = ("weather", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})

PRINTED = """Hi there
['', 'Hi', ' there']
{"city":"Oslo"}
Hi there
StatusCode.INVALID_ARGUMENT No

Hi
StatusCode.UNAVAILABLE
['Oslo', 'Rome']
Oslo
StatusCode.INTERNAL
StatusCode.DEADLINE_EXCEEDED
left
Hi there
https://x.test/made.png
Hi there
['', 'Hi', ' there']
cancelled
"""
"""What it prints."""


class City(BaseModel):
    city: str


def main() -> None:
    target, folder = sys.argv[1:]
    sys.path.append(folder)
    import grpc
    from xai_sdk import AsyncClient, Client
    from xai_sdk.chat import image, system, tool, user

    client = Client(api_key="k", api_host=target, use_insecure_channel=True)

    def chat(ask: str, made: object = client, **more: object) -> object:
        return made.chat.create(  # type: ignore[attr-defined]
            model="grok-4", messages=[system("Be brief"), user(ask)], temperature=0.7, **more
        )

    print(chat("Hello").sample().content)
    print([part.content for _, part in chat("Hello").stream()])
    print(chat("tools", tools=[tool(*TOOL)]).sample().tool_calls[0].function.arguments)
    looked = client.chat.create(
        model="grok-4", messages=[user("Hello", image("https://x.test/a.png", detail="low"))]
    )
    print(looked.sample().content)
    try:
        chat("refused").sample()
    except grpc.RpcError as error:
        print(error.code(), error.details())
    try:
        for _, part in chat("cut").stream():
            print(part.content)
    except grpc.RpcError as error:
        print(error.code())

    for _, part in chat("parallel").stream():
        if part.tool_calls:
            print([json.loads(one.function.arguments)["city"] for one in part.tool_calls])
    print(chat("schema").parse(City)[1].city)  # type: ignore[attr-defined]
    hurried = Client(api_key="k", api_host=target, use_insecure_channel=True, timeout=0.4)
    for word, made in (("failed", client), ("held", hurried)):
        try:
            chat(word, made).sample()
        except grpc.RpcError as error:
            print(error.code())
    for _ in chat("Hello").stream():
        print("left")
        break
    print(chat("deferred").defer(interval=timedelta(milliseconds=10)).content)
    print(client.image.sample("Draw", "grok-imagine").url)

    async def asynchronous() -> None:
        async with AsyncClient(api_key="k", api_host=target, use_insecure_channel=True) as made:
            answer = await chat("Hello", made).sample()
            print(answer.content)
            print([part.content async for _, part in chat("Hello", made).stream()])
            begun = asyncio.Event()

            async def reading() -> None:
                async for _ in chat("held", made).stream():
                    begun.set()

            task = asyncio.create_task(reading())
            await begun.wait()
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                print("cancelled")

    asyncio.run(asynchronous())


if __name__ == "__main__":
    main()
