"""What is read from a rebuilt answer equals what was read from the recorded one."""

import json

import pytest
from support.answers.cassettes import Interaction, own, recorded

from playhead_genai.providers import Derived, WireResponse, derive, recognised
from playhead_genai.rebuilding import FORMS, rebuilt
from playhead_genai.rebuilding.calls import ModelAnswer, RebuildableCall, answer_of, asked_of
from playhead_genai.rebuilding.rendering import NotRebuilt
from playhead_semconv import attributes as a


def wire_of(one: Interaction) -> str:
    return recognised(one.method, one.url, one.body) or ""


KNOWN = [one for one in [*own(), *recorded()] if wire_of(one) in FORMS and one.status == 200]
MESSAGES = [one for one in KNOWN if "embed" not in wire_of(one) and "/invoke-with" not in one.url]


def read(wire: str, one: Interaction, response: WireResponse) -> Derived:
    found = derive(wire, one.body, response, url=one.url)
    assert found.problem == ""
    assert found.content_complete
    return found


@pytest.mark.parametrize("one", MESSAGES, ids=lambda one: f"{one.provider} {one.name} {one.streamed}")
def test_a_rebuilt_answer_says_the_same(one: Interaction):
    wire = wire_of(one)
    before = read(wire, one, WireResponse(one.status, one.headers, [one.data], True))
    answer = answer_of(before.attributes)
    call = RebuildableCall(asked_of("chat", "m", before.attributes), answer)
    assert RebuildableCall.decoded(call.encoded()) == call
    response, made = rebuilt(wire, answer, one.body, one.url)
    after = read(wire, one, response)
    assert made.left_out == []
    assert after.streamed == before.streamed
    assert after.attributes == before.attributes


def test_vectors_come_back():
    body = b'{"model": "m", "input": ["a"], "encoding_format": "base64"}'
    answer = ModelAnswer(vectors=[[0.5, 1.0]])
    response, _ = rebuilt("openai.embeddings", answer, body, "/v1/embeddings")
    assert json.loads(response.chunks[0])["data"][0]["embedding"] == "AAAAPwAAgD8="
    response, _ = rebuilt("openai.embeddings", answer, b'{"input": "a"}', "/v1/embeddings")
    assert json.loads(response.chunks[0])["data"][0]["embedding"] == [0.5, 1.0]
    with pytest.raises(NotRebuilt, match="no vectors"):
        rebuilt("openai.embeddings", ModelAnswer(), body, "/v1/embeddings")


def test_what_a_span_does_not_say_is_named():
    said = [{"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": {}}]}]
    answer = answer_of({a.GEN_AI_OUTPUT_MESSAGES: said})
    _, made = rebuilt("openai.chat", answer, b'{"model": "m", "messages": []}', "/chat/completions")
    lacking = ["finish reason", "ids of tool calls", "model", "response id", "spelling of arguments"]
    assert sorted(made.made_up) == lacking


@pytest.mark.parametrize(
    ("kind", "status"), [("429", 429), ("openai.RateLimitError", 429), ("overloaded_error", 529)]
)
def test_a_refusal_of_a_provider_comes_back(kind: str, status: int):
    answer = answer_of({a.ERROR_TYPE: kind}, error_message="slow down")
    response, _ = rebuilt("openai.chat", answer, b"{}", "/chat/completions")
    assert response.status_code == status
    assert json.loads(response.chunks[0])["error"]["message"] == "slow down"


def test_an_error_that_no_provider_sent_is_not_rebuilt():
    with pytest.raises(NotRebuilt, match="APIConnectionError"):
        rebuilt("openai.chat", answer_of({a.ERROR_TYPE: "APIConnectionError"}), b"{}", "/x")
