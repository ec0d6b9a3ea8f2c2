"""Real SDKs, recorded and replayed with the server gone: the SDK's own decoder sees the same bytes."""

import asyncio

import anthropic
import openai
import pytest
from support.servers.scripted import (
    ScriptedServer,
    anthropic_messages,
    anthropic_sse,
    chat_sse,
    json_reply,
    openai_chat,
    openai_error,
    openai_responses,
    responses_sse,
)
from support.tapes.sessions import record, replay

from playhead_semconv import attributes as a

CHAT = openai_chat.completion("hello there, my friend")
QUESTION = [{"role": "user", "content": "hi"}]


def chat(url):
    client = openai.OpenAI(base_url=url, api_key="key-of-the-test")
    return client.chat.completions.create(model="gpt-4o", messages=QUESTION).model_dump()


def chat_streamed(url):
    client = openai.OpenAI(base_url=url, api_key="key-of-the-test")
    stream = client.chat.completions.create(model="gpt-4o", messages=QUESTION, stream=True)
    return [chunk.model_dump() for chunk in stream]


def chat_async(url):
    async def main():
        async with openai.AsyncOpenAI(base_url=url, api_key="key-of-the-test") as client:
            stream = await client.chat.completions.create(model="gpt-4o", messages=QUESTION, stream=True)
            return [chunk.model_dump() async for chunk in stream]

    return asyncio.run(main())


def responses(url):
    client = openai.OpenAI(base_url=url, api_key="key-of-the-test")
    stream = client.responses.create(model="gpt-4o", input="hi", stream=True)
    return [event.model_dump() for event in stream]


def failing(url):
    client = openai.OpenAI(base_url=url, api_key="key-of-the-test", max_retries=0)
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="gpt-4o", messages=QUESTION)
    return type(caught.value).__name__, str(caught.value), caught.value.status_code


def truncated(url):
    client = openai.OpenAI(base_url=url, api_key="key-of-the-test", max_retries=0)
    chunks = []
    with pytest.raises(openai.APIConnectionError) as caught:
        for chunk in client.chat.completions.create(model="gpt-4o", messages=QUESTION, stream=True):
            chunks.append(chunk.model_dump())
    return chunks, type(caught.value.__cause__).__name__, str(caught.value.__cause__)


def message(url):
    client = anthropic.Anthropic(base_url=url, api_key="key-of-the-test")
    with client.messages.stream(model="claude", max_tokens=10, messages=QUESTION) as stream:
        return "".join(stream.text_stream), stream.get_final_message().model_dump()


@pytest.mark.parametrize(
    "program, replies, exchanges",
    [
        (chat, [json_reply(CHAT)], 1),
        (chat, [json_reply(CHAT, gzip=True)], 1),
        (chat, [openai_error(429), json_reply(CHAT)], 2),
        (chat_streamed, [chat_sse(CHAT)], 1),
        (chat_async, [chat_sse(CHAT)], 1),
        (responses, [responses_sse(openai_responses.response([openai_responses.message("hi")]))], 1),
        (failing, [openai_error(401)], 1),
        (failing, [openai_error(429)], 1),
        (truncated, [chat_sse(CHAT, truncate_at=700)], 1),
    ],
)
def test_openai(program, replies, exchanges):
    with ScriptedServer() as server:
        server.script(replies)
        recorded, tape = record(lambda: program(server.openai_url))
    assert len(tape.exchanges()) == exchanges
    replayed, now = replay(lambda: program(server.openai_url), tape)
    assert replayed == recorded
    fidelities = [one.ask.details[a.PLAYHEAD_FIDELITY] for one in now.exchanges().values()]
    assert fidelities == ["exact"] * exchanges


def test_anthropic():
    with ScriptedServer() as server:
        server.script([anthropic_sse(anthropic_messages.message([anthropic_messages.text("hi you")]))])
        recorded, tape = record(lambda: message(server.url))
    assert recorded[0] == "hi you"
    assert replay(lambda: message(server.url), tape)[0] == recorded
