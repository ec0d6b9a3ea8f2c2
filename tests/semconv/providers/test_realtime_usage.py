"""What calls over a WebSocket used, told message by message: as much as the calls say in the end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.answers.spoken_sessions import (
    CAME,
    LIVE,
    REALTIME,
    RESPONSES,
    SENT,
    session,
    told_while_it_goes_on,
)

from playhead_genai.providers.realtime.usage import usage_reader, used
from playhead_semconv import attributes as a

SETUP = (SENT, {"setup": {"model": "models/gemini-live"}})
HELLO = (SENT, {"realtimeInput": {"text": "Hello"}})
OVER = {"serverContent": {"turnComplete": True}}


def piece(text: str) -> tuple[bool, Any]:
    return CAME, {"serverContent": {"modelTurn": {"parts": [{"text": text}]}}}


def usage(sent: int, got: int) -> dict[str, Any]:
    return {"usageMetadata": {"promptTokenCount": sent, "responseTokenCount": got}}


@pytest.mark.parametrize(
    ("messages", "total"),
    [
        ([piece("a"), (CAME, usage(7, 1)), piece("b"), (CAME, OVER | usage(7, 3))], [7, 3]),
        ([piece("a"), (CAME, OVER), (CAME, usage(7, 3))], [7, 3]),
        ([piece("a"), (CAME, OVER | usage(7, 3)), piece("b"), (CAME, OVER | usage(9, 3))], [16, 6]),
        ([piece("a"), (CAME, OVER), (CAME, usage(7, 3)), piece("b"), (CAME, usage(9, 1))], [16, 4]),
        ([piece("a"), (CAME, usage(7, 3)), (CAME, OVER | usage(0, 0))], [7, 3]),
        ([(CAME, {"toolCall": {"functionCalls": []}} | usage(7, 3))] * 2, [14, 6]),
    ],
)
def test_counts_of_one_answer_of_gemini_replace_each_other(messages: list[Any], total: list[int]):
    messages = [SETUP, HELLO, *messages]
    assert told_while_it_goes_on(LIVE, messages) == total
    session(LIVE, *messages)


def last(url: str, *messages: tuple[bool, Any]) -> Any:
    reader = usage_reader(url)
    assert reader is not None
    return [used(reader, sent, json.dumps(value).encode()) for sent, value in messages][-1]


def test_each_says_its_model():
    counts = {"input_tokens": 12, "output_tokens": 5}
    created = (CAME, {"type": "session.created", "session": {"model": "gpt-realtime-2"}})
    done = (CAME, {"type": "response.done", "response": {"usage": counts}})
    whole = {"type": "response.completed", "response": {"model": "gpt-5.5", "usage": counts}}
    told = {a.GEN_AI_USAGE_INPUT_TOKENS: 12, a.GEN_AI_USAGE_OUTPUT_TOKENS: 5}
    assert last(REALTIME, done) == told | {a.GEN_AI_RESPONSE_MODEL: "gpt-realtime"}
    assert last(REALTIME, created, done) == told | {a.GEN_AI_RESPONSE_MODEL: "gpt-realtime-2"}
    assert last(RESPONSES, (CAME, whole)) == told | {a.GEN_AI_RESPONSE_MODEL: "gpt-5.5"}
    found = last(LIVE, SETUP, HELLO, piece("a"), (CAME, usage(12, 5)))
    assert found == told | {a.GEN_AI_RESPONSE_MODEL: "gemini-live"}


@pytest.mark.parametrize(
    "data", [b"", b"[1]", b"\xff", b'{"usageMetadata": 1}', b'{"response": "usage"}']
)
@pytest.mark.parametrize("url", [REALTIME, RESPONSES, LIVE])
def test_what_is_no_message_of_the_wire_says_nothing(url: str, data: bytes):
    reader = usage_reader(url)
    assert reader is not None and used(reader, False, data) == {}
    assert usage_reader("wss://any.host/chat") is None
