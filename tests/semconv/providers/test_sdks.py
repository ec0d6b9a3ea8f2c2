"""Against the real SDKs: what is derived from a stream is what the SDK made of it."""

import json
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel
from support.servers.scripted import (
    ScriptedServer,
    anthropic_messages,
    anthropic_sse,
    chat_sse,
    json_reply,
    openai_chat,
    openai_responses,
    responses_sse,
    sse,
)
from support.tapes.conventions import check_content

from playhead_genai.providers import Derived, WireResponse, derive

USER: Any = [{"role": "user", "content": "hello"}]
STREAM = [("content-type", "text/event-stream")]
JSON = [("content-type", "application/json")]


class Order(BaseModel):
    number: int


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def gpt(server):
    with openai.OpenAI(base_url=server.openai_url, api_key="test") as client:
        yield client


@pytest.fixture
def claude(server):
    with anthropic.Anthropic(base_url=server.url, api_key="test") as client:
        yield client


def read(wire: str, request: bytes, chunks: list[bytes]) -> Derived:
    found = derive(wire, request, WireResponse(200, STREAM, chunks, True))
    assert check_content(found.attributes) >= 2
    assert found.content_complete and not found.problem
    return found


def same(found: Derived, wire: str, request: bytes, final: BaseModel) -> None:
    """``found`` in a stream equals what is derived from the SDK's final object as a plain body."""
    body = final.model_dump_json(by_alias=True).encode()
    plain = derive(wire, request, WireResponse(200, JSON, [body], True))
    assert plain.streamed is False
    assert found.attributes == plain.attributes | {"gen_ai.request.stream": True}


def test_chat(server, gpt):
    calls = [
        openai_chat.tool_call("call_1", "weather", {"city": "Oslo"}),
        openai_chat.tool_call("call_2", "weather", {"city": "Rome", "days": [1, 2]}),
    ]
    whole = openai_chat.completion(
        choices=[
            openai_chat.choice("Héllo there, you all"),
            openai_chat.choice(index=1, tool_calls=calls, finish_reason="tool_calls"),
        ],
        usage=openai_chat.usage(30, 9, cached=10, reasoning=4),
    )
    server.script([chat_sse(whole)])
    with gpt.chat.completions.stream(model="gpt-4o", messages=USER, n=2) as stream:
        final = stream.get_final_completion()
    request = server.requests[0].body
    same(
        read("openai.chat", request, sse.chat(openai_chat.chunks(whole))), "openai.chat", request, final
    )


def test_responses(server, gpt):
    whole = openai_responses.response(
        [
            openai_responses.reasoning("Let me see", encrypted_content="ZW5j"),
            openai_responses.message("Héllo there"),
            openai_responses.function_call("call_1", "weather", {"city": "Oslo"}),
        ],
        usage=openai_responses.usage(30, 9, cached=10, reasoning=4),
    )
    server.script([responses_sse(whole)])
    with gpt.responses.stream(model="gpt-4o", input="hello", instructions="Be brief.") as stream:
        final = stream.get_final_response()
    request = server.requests[0].body
    chunks = sse.events(openai_responses.events(whole))
    same(read("openai.responses", request, chunks), "openai.responses", request, final)
    cut = derive("openai.responses", request, WireResponse(200, STREAM, chunks[:-1], False))
    name = "gen_ai.output.messages"
    assert cut.attributes[name] == read("openai.responses", request, chunks).attributes[name]


def test_anthropic(server, claude):
    whole = anthropic_messages.message(
        [
            anthropic_messages.thinking("Let me see"),
            anthropic_messages.text("Héllo there"),
            anthropic_messages.tool_use("toolu_1", "weather", {"city": "Oslo", "days": [1, 2]}),
        ],
        usage=anthropic_messages.usage(30, 9, cache_read=10, cache_write=4),
        stop_reason="tool_use",
    )
    server.script([anthropic_sse(whole)])
    with claude.messages.stream(
        model="claude-opus-5", max_tokens=9, messages=USER, system="Hi"
    ) as stream:
        final = stream.get_final_message()
    request = server.requests[0].body
    found = read("anthropic.messages", request, sse.events(anthropic_messages.events(whole)))
    same(found, "anthropic.messages", request, final)
    assert found.attributes["gen_ai.usage.input_tokens"] == 44


def test_a_parsed_chat_asks_for_json(server, gpt):
    whole = openai_chat.completion('{"number": 81}')
    server.script([json_reply(whole)])
    parsed = gpt.chat.completions.parse(
        model="gpt-4o", messages=USER, response_format=Order, stop=["END"]
    )
    assert parsed.choices[0].message.parsed == Order(number=81)
    response = WireResponse(200, JSON, [json.dumps(whole).encode()], True)
    found = derive("openai.chat", server.requests[0].body, response)
    assert found.attributes["gen_ai.output.type"] == "json"
    assert found.attributes["gen_ai.request.stop_sequences"] == ["END"]
    assert "gen_ai.request.stream" not in found.attributes
