"""The OpenAI SDK over a transport that answers by itself: whole, streamed, sync and async."""

import asyncio
import json
import sys

import openai

library = sys.modules[openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]
WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
    ],
}
PIECE = {**WHOLE, "object": "chat.completion.chunk"}
PIECE["choices"] = [{"index": 0, "delta": {"role": "assistant", "content": "hi"}}]
EVENTS = f"data: {json.dumps(PIECE)}\n\ndata: [DONE]\n\n"
ASKED = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}


def answer(request):
    if json.loads(request.content).get("stream"):
        return library.Response(200, text=EVENTS, headers={"content-type": "text/event-stream"})
    return library.Response(200, json=WHOLE)


transport = library.MockTransport(answer)
with openai.OpenAI(api_key="k", http_client=library.Client(transport=transport)) as client:
    print(client.chat.completions.create(**ASKED).choices[0].message.content)
    with client.chat.completions.create(**ASKED, stream=True) as stream:
        print([piece.choices[0].delta.content for piece in stream])


async def main():
    http = library.AsyncClient(transport=transport)
    async with openai.AsyncOpenAI(api_key="k", http_client=http) as client:
        whole = await asyncio.gather(*(client.chat.completions.create(**ASKED) for _ in range(3)))
        print([one.choices[0].message.content for one in whole])
        async with await client.chat.completions.create(**ASKED, stream=True) as stream:
            print([piece.choices[0].delta.content async for piece in stream])


asyncio.run(main())
sys.exit(3)
