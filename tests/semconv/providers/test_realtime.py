"""Calls over WebSockets: the messages of a session become calls, at any host."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.answers.spoken_sessions import CAME, LIVE, REALTIME, RESPONSES, SENT, content, session

from playhead_genai.providers.realtime.calls import RealtimeCall
from playhead_genai.providers.realtime.connection import realtime_span_id, realtime_wire

TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
CREATED = {
    "type": "session.created",
    "session": {"id": "sess_1", "model": "gpt-realtime-2026", "output_modalities": ["audio"]},
}
UPDATED = {
    "type": "session.updated",
    "session": {
        "instructions": "Be brief.",
        "tools": [TOOL],
        "max_output_tokens": 99,
        "reasoning": {"effort": "low"},
    },
}
ASKED = {"id": "i1", "type": "message", "role": "user", "content": [{"type": "input_audio"}]}
CALL = {
    "id": "i2",
    "type": "function_call",
    "call_id": "c1",
    "name": "weather",
    "arguments": '{"city":"Oslo"}',
}
OUTPUT = {"id": "i3", "type": "function_call_output", "call_id": "c1", "output": "rain"}
SAID = {
    "id": "i4",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_audio", "transcript": "It rains"}],
}
USAGE = {
    "input_tokens": 30,
    "output_tokens": 9,
    "input_token_details": {"text_tokens": 10, "audio_tokens": 20, "cached_tokens": 4},
    "output_token_details": {"text_tokens": 3, "audio_tokens": 6},
}


def done(identity: str, status: str, *output: Any, **more: Any) -> dict[str, Any]:
    said = {"id": identity, "status": status, "output": list(output), "conversation_id": "conv_1"}
    return {"type": "response.done", "response": said | more}


def test_a_realtime_session():
    heard = {
        "type": "conversation.item.input_audio_transcription.completed",
        "item_id": "i1",
        "content_index": 0,
        "transcript": "How is it in Oslo?",
    }
    first, second = session(
        REALTIME,
        (CAME, CREATED),
        (SENT, {"type": "session.update", "session": UPDATED["session"]}),
        (CAME, UPDATED),
        (SENT, {"type": "input_audio_buffer.append", "audio": "AAAA"}),
        (CAME, {"type": "conversation.item.added", "item": ASKED}),
        (CAME, {"type": "response.created", "response": {"id": "r1"}}),
        (CAME, {"type": "conversation.item.added", "item": CALL}),
        (CAME, done("r1", "completed", CALL, usage=USAGE)),
        (CAME, heard),
        (SENT, {"type": "conversation.item.create", "item": OUTPUT}),
        (CAME, {"type": "conversation.item.added", "item": OUTPUT}),
        (SENT, {"type": "response.create"}),
        (CAME, {"type": "response.created", "response": {"id": "r2"}}),
        (CAME, {"type": "response.output_audio.delta", "response_id": "r2", "delta": "AAAA"}),
        (CAME, done("r2", "completed", SAID, usage=USAGE)),
    )
    at = first.attributes
    assert (at["gen_ai.operation.name"], at["gen_ai.request.model"]) == ("chat", "gpt-realtime")
    assert at["gen_ai.response.model"] == "gpt-realtime-2026"
    assert at["gen_ai.conversation.id"] == "conv_1"
    assert (at["gen_ai.output.type"], at["gen_ai.request.max_tokens"]) == ("speech", 99)
    assert at["gen_ai.request.reasoning.level"] == "low"
    assert at["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert (at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]) == (30, 9)
    assert at["gen_ai.usage.audio.output_tokens"] == 6
    assert at["gen_ai.usage.cache_read.input_tokens"] == 4
    assert at["playhead.tool.called"] == ["weather"]
    assert at["playhead.wire"] == "openai.realtime"
    assert content(first, "system_instructions")[0]["content"] == "Be brief."
    assert content(first, "tool.definitions")[0]["name"] == "weather"
    (question,) = content(first, "input.messages")
    assert question["parts"] == [{"type": "text", "content": "How is it in Oslo?"}]
    (answer,) = content(first, "output.messages")
    assert answer["parts"][0]["arguments"] == {"city": "Oslo"}
    assert (first.started_ns, first.ended_ns) == (5 * 10**9, 7 * 10**9)
    (result,) = content(second, "input.messages")
    assert (result["role"], result["parts"][0]["response"]) == ("tool", "rain")
    assert content(second, "output.messages")[0]["parts"][0]["content"] == "It rains"
    assert (second.started_ns, second.first_ns) == (11 * 10**9, 13 * 10**9)
    assert second.attributes["gen_ai.response.time_to_first_chunk"] == 2


def test_a_realtime_session_that_goes_wrong():
    failed = {"type": "failed", "error": {"code": "overloaded", "message": "Later"}}
    delta = {
        "type": "response.output_audio_transcript.delta",
        "response_id": "r2",
        "output_index": 0,
        "content_index": 0,
        "delta": "It ra",
    }
    refused, broken, cut = session(
        REALTIME,
        (CAME, CREATED),
        (SENT, {"type": "response.create", "response": {"instructions": "Sing."}}),
        (CAME, {"type": "error", "error": {"code": "invalid_value", "message": "No"}}),
        (CAME, {"type": "response.created", "response": {"id": "r1"}}),
        (CAME, done("r1", "failed", status_details=failed)),
        (CAME, {"type": "response.created", "response": {"id": "r2"}}),
        (CAME, delta),
    )
    assert (refused.error_type, refused.error_message) == ("invalid_value", "No")
    assert content(refused, "system_instructions")[0]["content"] == "Sing."
    assert (broken.error_type, broken.error_message) == ("overloaded", "Later")
    assert content(cut, "output.messages")[0]["parts"] == [{"type": "text", "content": "It ra"}]
    assert (cut.ended_ns, cut.attributes["gen_ai.response.finish_reasons"]) == (None, ["error"])
    assert broken.at_host("openai") == {
        "gen_ai.provider.name": "openai",
        "error.type": "overloaded",
    }


def test_a_live_session():
    setup = {
        "model": "models/gemini-live",
        "generationConfig": {"temperature": 0.5, "responseModalities": ["AUDIO"]},
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "weather"}]}],
    }
    turn = {"role": "user", "parts": [{"text": "How is it in Oslo?"}]}
    call = {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}
    used = {"promptTokenCount": 30, "responseTokenCount": 9}
    answer = {"functionResponses": [{"id": "c1", "name": "weather", "response": {"sky": "rain"}}]}
    sound = {"inlineData": {"mimeType": "audio/pcm", "data": "AAAA"}}
    first, second, third = session(
        LIVE,
        (SENT, {"setup": setup}),
        (CAME, {"setupComplete": {}}),
        (SENT, {"client_content": {"turns": [turn], "turn_complete": True}}),
        (CAME, {"toolCall": {"functionCalls": [call]}, "usageMetadata": used}),
        (SENT, {"toolResponse": answer}),
        (CAME, {"serverContent": {"modelTurn": {"parts": [sound]}}}),
        (CAME, {"serverContent": {"outputTranscription": {"text": "It "}}}),
        (CAME, {"serverContent": {"outputTranscription": {"text": "rains"}}}),
        (CAME, {"serverContent": {"turnComplete": True}, "usageMetadata": used}),
        (SENT, {"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm"}}}),
        (CAME, {"serverContent": {"inputTranscription": {"text": "Thanks"}}}),
        (CAME, {"serverContent": {"modelTurn": {"parts": [{"text": "You are "}]}}}),
        (CAME, {"serverContent": {"modelTurn": {"parts": [{"text": "wel"}]}, "interrupted": True}}),
    )
    at = first.attributes
    assert at["gen_ai.operation.name"] == "generate_content"
    assert (at["gen_ai.request.model"], at["gen_ai.request.temperature"]) == ("gemini-live", 0.5)
    assert at["gen_ai.output.type"] == "speech"
    assert at["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert (at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]) == (30, 9)
    assert content(first, "system_instructions")[0]["content"] == "Be brief."
    assert content(first, "tool.definitions")[0]["name"] == "weather"
    assert content(first, "output.messages")[0]["parts"][0]["arguments"] == {"city": "Oslo"}
    (result,) = content(second, "input.messages")
    assert (result["role"], result["parts"][0]["response"]) == ("tool", {"sky": "rain"})
    assert content(second, "output.messages")[0]["parts"] == [{"type": "text", "content": "It rains"}]
    assert second.attributes["gen_ai.usage.output_tokens"] == 9
    assert content(third, "input.messages")[0]["parts"][0]["content"] == "Thanks"
    assert content(third, "output.messages")[0]["parts"][0]["content"] == "You are wel"
    assert third.attributes["gen_ai.response.finish_reasons"] == ["interrupted"]


CUT_TEXT = ["party \ud83c", "\udf89 time \ud83d", " end"]
"""A character in two messages, and half a character."""


def _openai_delta(kind: str, delta: str) -> dict[str, Any]:
    at = {"response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}
    return {"type": f"response.{kind}.delta", **at, "delta": delta}


@pytest.mark.parametrize("kind", ["output_text", "output_audio_transcript"])
def test_a_realtime_server_cuts_a_character(kind: str):
    (call,) = session(
        REALTIME,
        (CAME, CREATED),
        (SENT, {"type": "response.create"}),
        (CAME, {"type": "response.created", "response": {"id": "r1"}}),
        *[(CAME, _openai_delta(kind, piece)) for piece in CUT_TEXT],
    )
    _says_the_whole_text(call)


def test_a_responses_server_cuts_a_character():
    (call,) = session(
        RESPONSES,
        (SENT, {"type": "response.create", "input": "Hi", "model": "m"}),
        (CAME, {"type": "response.created", "response": {"id": "r1", "model": "m \ud83d"}}),
        *[(CAME, _openai_delta("output_text", piece)) for piece in CUT_TEXT],
    )
    _says_the_whole_text(call)
    assert call.attributes["gen_ai.response.model"] == "m \ufffd"


@pytest.mark.parametrize("spoken", [False, True])
def test_a_live_server_cuts_a_character(spoken: bool):
    pieces = [
        {"outputTranscription": {"text": piece}}
        if spoken
        else {"modelTurn": {"parts": [{"text": piece}]}}
        for piece in CUT_TEXT
    ]
    (call,) = session(
        LIVE,
        (SENT, {"setup": {"model": "models/m"}}),
        (SENT, {"realtimeInput": {"text": "Hi"}}),
        *[(CAME, {"serverContent": piece}) for piece in pieces],
        (CAME, {"serverContent": {"turnComplete": True}}),
    )
    _says_the_whole_text(call)


def _says_the_whole_text(call: RealtimeCall) -> None:
    (part,) = content(call, "output.messages")[0]["parts"]
    assert part["content"] == "party \U0001f389 time \ufffd end"


WORDS = st.sampled_from(
    """type session.created session.updated response.create response.created response.done error item
    conversation.item.added conversation.item.input_audio_transcription.completed response session id
    response.output_item.added response.output_text.delta response.output_audio_transcript.delta
    response_id item_id output content output_index content_index delta transcript status usage
    status_details tools instructions role user assistant message function_call call_id name arguments
    setup clientContent realtimeInput toolResponse serverContent toolCall usageMetadata turns parts
    text modelTurn turnComplete interrupted inputTranscription outputTranscription functionCalls
    functionResponses model systemInstruction generationConfig functionDeclarations inlineData a
    event_id input item_reference conversation.item.create conversation.item.deleted response.cancel
    cancelled failed reason code contextUpdate setupComplete generationComplete turnCompleteReason
    response.completed response.failed response.steer response.steer.failed steer stream_id
    previous_response_id sequence_number
    """.split()
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=10,
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=5)
BEGUN: dict[str, tuple[bool, Any]] = {
    REALTIME: (CAME, CREATED),
    RESPONSES: (SENT, {"type": "response.create", "model": "m"}),
    LIVE: (SENT, {"setup": {}}),
}
"""URL → the message that a session there begins with."""


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from([*BEGUN]), st.lists(st.tuples(st.booleans(), OBJECTS, WORDS), max_size=8))
def test_any_messages(url: str, messages: list[tuple[bool, dict[str, Any], str]]):
    session(url, BEGUN[url], *((sent, {"type": kind} | value) for sent, value, kind in messages))


def test_deep_messages():
    deep = b'{"id":"r","output":' + b"[" * 950 + b"]" * 950 + b"}"
    made = b'{"type":"response.created","response":{"id":"r"}}'
    session(
        REALTIME, (CAME, CREATED), (CAME, made), (CAME, b'{"type":"response.done","response":%b}' % deep)
    )
    setup = b'{"setup":{"tools":' + b"[" * 950 + b"]" * 950 + b"}}"
    said = {"serverContent": {"modelTurn": {"parts": [{"text": "Hi"}]}}}
    session(LIVE, (SENT, setup), (CAME, said))


def test_what_is_no_session():
    assert realtime_wire("wss://e.org/chat") == ""
    assert session("wss://e.org/chat", (CAME, CREATED)) == []
    assert session(REALTIME, (CAME, {"type": "hello"}), (SENT, {"type": "response.create"})) == []
    assert session(LIVE, (CAME, {"serverContent": {"modelTurn": {"parts": [{"text": "Hi"}]}}})) == []
    hostile = [b"[", b"[1]", b'{"type": 3}', b'{"type": "response.created", "response": 1}', b"\xff"]
    for url in (REALTIME, LIVE):
        begun = CREATED if url == REALTIME else {"setup": 3}
        session(url, (url == LIVE, begun), *((way, one) for one in hostile for way in (SENT, CAME)))
    assert realtime_span_id(b"12345678", 0) != realtime_span_id(b"12345678", 1)
