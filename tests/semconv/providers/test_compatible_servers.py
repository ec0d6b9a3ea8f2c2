"""Servers that speak OpenAI's chat: their providers, their reasoning, their oddities."""

from typing import Any

import pytest
from support.answers.wires import DONE, content, derived, dump, sse, stream, whole

from playhead_genai.providers import WireResponse, derive, span_attributes

CHAT = "openai.chat"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def body(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        **fields,
    }


def parts(message: dict[str, Any]) -> Any:
    found = derived(CHAT, ASKED, whole(body({"role": "assistant", **message})))
    return content(found, "output.messages")[0]["parts"]


def test_reasoning_beside_the_content():
    told = {"type": "reasoning", "content": "Hm"}
    text = {"type": "text", "content": "Hello"}
    assert parts({"content": "Hello", "reasoning": "Hm"}) == [told, text]
    assert parts({"content": "Hello", "reasoning_content": "Hm"}) == [told, text]
    assert parts({"content": "Hello", "reasoning": "Hm", "reasoning_content": "Hm"}) == [told, text]
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    assert parts({"content": [thinking, {"type": "text", "text": "Hello"}]}) == [told, text]


def test_reasoning_that_is_no_text_stays_a_field():
    found = derived(CHAT, ASKED, whole(body({"content": "Hello", "reasoning": {"effort": "high"}})))
    (message,) = content(found, "output.messages")
    assert message["parts"] == [{"type": "text", "content": "Hello"}]
    assert message["reasoning"] == {"effort": "high"}


def test_words_of_mistral():
    answer = body({"content": "Hello"})
    answer["choices"][0]["finish_reason"] = "model_length"
    found = derived(CHAT, ASKED | {"random_seed": 5}, whole(answer))
    assert found.attributes["gen_ai.request.seed"] == 5
    assert found.attributes["gen_ai.response.finish_reasons"] == ["length"]


def test_reasoning_in_streams():
    def delta(**fields: Any) -> dict[str, Any]:
        return {"model": "m", "choices": [{"index": 0, "delta": fields}]}

    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    plain = [delta(reasoning="H"), delta(reasoning="m"), delta(content="Hel"), delta(content="lo"), last]
    mistral = [
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}]),
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}]),
        delta(content="Hel"),
        delta(content="lo"),
        last,
    ]
    for events in (plain, mistral):
        found = derived(CHAT, ASKED, stream(*sse(*events), DONE))
        assert content(found, "output.messages")[0]["parts"] == [
            {"type": "reasoning", "content": "Hm"},
            {"type": "text", "content": "Hello"},
        ]


def test_text_that_becomes_an_array_raises_nothing():
    events = [
        {"choices": [{"index": 0, "delta": {"content": one}}]} for one in ("a", [{"type": "b"}], "c")
    ]
    assert content(derived(CHAT, ASKED, stream(*sse(*events))), "output.messages")


def test_a_call_without_a_name_is_no_call():
    empty = {"content": "Hello", "function_call": {"name": "", "arguments": ""}}
    assert parts(empty) == [{"type": "text", "content": "Hello"}]


def test_an_empty_description_stays_one():
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}
    found = derived(CHAT, ASKED | {"tools": [tool]})
    assert content(found, "tool.definitions") == [
        {"type": "function", "name": "f", "description": "", "parameters": {}}
    ]


def test_added_tools_are_the_developers():
    item = {"type": "additional_tools", "role": "developer", "tools": [{"type": "web_search"}]}
    found = derived("openai.responses", {"model": "m", "input": [item]})
    (message,) = content(found, "input.messages")
    assert message["role"] == "developer"
    assert message["parts"][0]["type"] == "additional_tools"


@pytest.mark.parametrize(
    ("host", "headers", "fields", "provider"),
    [
        ("api.openai.com", [], {}, "openai"),
        ("api.groq.com", [], {}, "groq"),
        ("api.together.xyz", [], {}, "together_ai"),
        ("openrouter.ai", [], {"provider": "OpenAI"}, "openrouter"),
        ("router.huggingface.co", [], {}, "hugging_face"),
        ("gateway.corp", [("openai-version", "2020-10-01")], {}, "openai"),
        ("gateway.corp", [("apim-request-id", "1"), ("openai-version", "1")], {}, "azure.ai.openai"),
        ("localhost", [], {"system_fingerprint": "fp_ollama"}, "ollama"),
        ("localhost", [], {"x_groq": {"id": "1"}}, "groq"),
        ("localhost", [], {}, None),
    ],
)
def test_who_answered(host: str, headers: list[tuple[str, str]], fields: Any, provider: str | None):
    answer = dump(body({"role": "assistant", "content": "Hello"}, **fields))
    found = derive(CHAT, dump(ASKED), WireResponse(200, headers, [answer], True))
    assert span_attributes(CHAT, found, host, None).get("gen_ai.provider.name") == provider
