"""Sessions over WebSockets that go wrong: what is told of the answers that were being given."""

from typing import Any

import pytest
from support.answers.spoken_sessions import CAME, LIVE, REALTIME, SENT, Frame, closed, content, session

from playhead_core.facts import ErrorRecord
from playhead_genai.providers.realtime.calls import RealtimeCall
from playhead_genai.providers.realtime.connection import realtime_wire

CREATED = {"type": "session.created", "session": {"id": "sess_1", "model": "gpt-realtime"}}
ASK: tuple[bool, Any] = (SENT, {"type": "response.create", "event_id": "ask"})
BEGUN: tuple[bool, Any] = (CAME, {"type": "response.created", "response": {"id": "r1"}})
DELTA: dict[str, Any] = {
    "type": "response.output_text.delta",
    "response_id": "r1",
    "output_index": 0,
    "content_index": 0,
    "delta": "It ra",
}
SET_UP: tuple[bool, Any] = (SENT, {"setup": {"model": "models/gemini-live"}})
TURN = {"role": "user", "parts": [{"text": "Hello"}]}
QUESTION: tuple[bool, Any] = (SENT, {"clientContent": {"turns": [TURN], "turnComplete": True}})
PIECE: tuple[bool, Any] = (CAME, {"serverContent": {"modelTurn": {"parts": [{"text": "It ra"}]}}})
OVER: tuple[bool, Any] = (CAME, {"serverContent": {"turnComplete": True}})
SAYS_IT_RA = [{"type": "text", "content": "It ra"}]
HALVES = {
    "openai": (REALTIME, ((CAME, CREATED), ASK, BEGUN, (CAME, DELTA))),
    "gemini": (LIVE, (SET_UP, QUESTION, PIECE)),
}
"""The beginning of an answer."""
LOST = ErrorRecord("websockets.exceptions", "ConnectionClosedError", "no close frame received")


def done(status: str, **more: Any) -> tuple[bool, Any]:
    said = {"id": "r1", "status": status, "output": []}
    return (CAME, {"type": "response.done", "response": said | more})


def outcome(call: RealtimeCall) -> tuple[Any, ...]:
    """What tells how it ended: error, finish reasons, whether the program left."""
    told = call.attributes
    reasons = told.get("gen_ai.response.finish_reasons")
    return call.error_type, call.error_message, reasons, told.get("playhead.end.how")


@pytest.mark.parametrize("wire", HALVES)
@pytest.mark.parametrize(
    ("last", "end", "told"),
    [
        ((CAME, closed(1011, "Later")), None, ("1011", "Later", ["error"], None)),
        ((CAME, closed(1000)), None, ("truncated_response", "", ["error"], None)),
        ((CAME, Frame("close")), None, ("truncated_response", "", ["error"], None)),
        ((SENT, closed(1000)), None, ("", "", ["error"], "abandoned")),
        (
            (CAME, Frame("fail", closed(1011, "keepalive ping timeout").data)),
            None,
            ("1011", "keepalive ping timeout", ["error"], None),
        ),
        (
            (CAME, Frame("broken", b'["websockets.exceptions","PayloadTooBig","too big",[]]')),
            LOST,
            ("websockets.exceptions.PayloadTooBig", "too big", ["error"], None),
        ),
        ((CAME, Frame("broken", b"?")), LOST, ("_OTHER", "", ["error"], None)),
        (
            (CAME, Frame("ping")),
            LOST,
            ("websockets.exceptions.ConnectionClosedError", LOST.message, ["error"], None),
        ),
        (
            (CAME, Frame("ping")),
            ErrorRecord("builtins", "ConnectionResetError", "gone"),
            ("ConnectionResetError", "gone", ["error"], None),
        ),
    ],
)
def test_an_answer_that_the_end_of_the_connection_cuts_short(wire, last, end, told):
    url, half = HALVES[wire]
    (call,) = session(url, *half, last, end=end)
    assert outcome(call) == told
    assert call.ended_ns == (len(half) + (last[1].opcode == "ping")) * 10**9
    assert content(call, "output.messages")[0]["parts"] == SAYS_IT_RA
    (still,) = session(url, *half)
    assert (outcome(still), still.ended_ns) == (("", "", ["error"], None), None)


@pytest.mark.parametrize("wire", HALVES)
@pytest.mark.parametrize("last", [(SENT, closed(1000)), (CAME, closed(1011))])
def test_a_question_without_an_answer(wire, last):
    url, half = HALVES[wire]
    (call,) = session(url, *half[:2], last)
    assert outcome(call) == (("", "", None, "abandoned") if last[0] else ("1011", "", None, None))
    assert "gen_ai.output.messages" not in call.attributes
    assert call.attributes["gen_ai.request.model"] in ("gpt-realtime", "gemini-live")
    assert (call.started_ns, call.ended_ns) == (1 * 10**9, 2 * 10**9)


@pytest.mark.parametrize("wire", HALVES)
@pytest.mark.parametrize("what", [b"{", b"[]", b"3", b"\xff"])
def test_a_message_that_cannot_be_read(wire, what):
    url, half = HALVES[wire]
    last = done("completed") if wire == "openai" else OVER
    (call,) = session(url, (CAME, what), *half, (SENT, what), (CAME, what), last)
    assert outcome(call) == ("malformed_response", "a message is no JSON object", ["stop"], None)
    (call,) = session(url, *half, last, (CAME, what))
    assert outcome(call) == ("", "", ["stop"], None)


def test_a_question_of_which_nothing_is_answered():
    create = (SENT, {"type": "conversation.item.create", "item": _item("", "Hi")})
    (call,) = session(REALTIME, (CAME, CREATED), create, ASK, (SENT, closed(1000)))
    assert content(call, "input.messages")[0]["parts"] == [{"type": "text", "content": "Hi"}]
    assert outcome(call) == ("", "", None, "abandoned")


def test_why_a_response_is_over():
    half = HALVES["openai"][1]
    reasons = {
        "turn_detected": ("cancelled", "turn_detected"),
        "client_cancelled": ("cancelled", "client_cancelled"),
        "max_output_tokens": ("incomplete", "length"),
        "content_filter": ("incomplete", "content_filter"),
    }
    for reason, (status, told) in reasons.items():
        (call,) = session(REALTIME, *half, done(status, status_details={"reason": reason}))
        assert outcome(call) == ("", "", [told], None)
    (call,) = session(REALTIME, *half, done("cancelled"))
    assert outcome(call) == ("", "", ["cancelled"], None)
    (call,) = session(REALTIME, *half, done("failed"))
    assert outcome(call) == ("failed", "", ["error"], None)
    error = {"type": "server_error", "message": "Oh"}
    (call,) = session(REALTIME, *half, (CAME, b"{"), done("failed", status_details={"error": error}))
    assert outcome(call) == ("server_error", "Oh", ["error"], None)


def test_what_an_error_of_a_session_is_about():
    no: Any = {"type": "invalid_request_error", "code": "bad", "message": "No"}
    item = {
        "id": "i1",
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Hi"}],
    }
    create = (SENT, {"type": "conversation.item.create", "event_id": "item", "item": item})
    added = (CAME, {"type": "conversation.item.added", "item": item})
    error = (CAME, {"type": "error", "error": no})
    whole, cancel = (BEGUN, done("completed")), (SENT, {"type": "response.cancel"})
    cases: dict[str, tuple[list[tuple[bool, Any]], list[str]]] = {
        "the item, which was asked first": ([create, ASK, error, *whole], [""]),
        "the response, as the item is there": ([create, ASK, added, error], ["bad"]),
        "the response, by name": ([create, ASK, _naming(no, "ask"), added], ["bad"]),
        "the item, by name": ([ASK, create, _naming(no, "item"), *whole], [""]),
        "nothing that waits, by name": ([ASK, _naming(no, "other"), *whole], [""]),
        "the session, which went on": ([ASK, BEGUN, error, done("completed")], [""]),
        "the session, which ended": ([ASK, BEGUN, error, (CAME, closed(1001))], ["bad"]),
        "a wish to cancel that came too late": (
            [ASK, BEGUN, cancel, done("completed"), ASK, error, *map(_second, whole)],
            ["", ""],
        ),
        "a response, as the one before was cancelled": (
            [ASK, BEGUN, cancel, done("cancelled"), ASK, error],
            ["", "bad"],
        ),
    }
    for about, (messages, errors) in cases.items():
        calls = session(REALTIME, (CAME, CREATED), *messages)
        assert [call.error_type for call in calls] == errors, about
    (call,) = session(REALTIME, ASK, error)
    assert (call.error_type, call.attributes["gen_ai.request.model"]) == ("bad", "gpt-realtime")
    assert session(REALTIME, error) == []


def _item(identity: str, said: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": said}]
    return {"id": identity, "type": "message", "role": "user", "content": content}


def _naming(error: dict[str, Any], event: str) -> tuple[bool, Any]:
    return (CAME, {"type": "error", "error": error | {"event_id": event}})


def _second(message: tuple[bool, Any]) -> tuple[bool, Any]:
    """The same about a second response."""
    sent, value = message
    return sent, value | {"response": value["response"] | {"id": "r2"}}


def test_what_a_response_answers():
    listed = [{"type": "item_reference", "id": "i1"}, _item("", "Apart")]
    apart = {"conversation": "none", "input": listed}
    first, second = session(
        REALTIME,
        (CAME, CREATED),
        *(
            (CAME, {"type": "conversation.item.added", "item": _item(f"i{n}", f"No {n}")})
            for n in (1, 2)
        ),
        (CAME, {"type": "conversation.item.deleted", "item_id": "i2"}),
        (SENT, {"type": "response.create", "response": apart}),
        BEGUN,
        done("completed"),
        ASK,
        _second(BEGUN),
        _second(done("completed")),
    )
    said = [one["parts"][0]["content"] for one in content(first, "input.messages")]
    assert said == ["No 1", "Apart"]
    assert [one["parts"][0]["content"] for one in content(second, "input.messages")] == ["No 1"]


def test_why_a_turn_is_over():
    reasons = {
        "PROHIBITED_INPUT_CONTENT": "content_filter",
        "RESPONSE_REJECTED": "content_filter",
        "GENERATED_AUDIO_SAFETY": "content_filter",
        "TURN_COMPLETE_REASON_UNSPECIFIED": "stop",
        "MALFORMED_FUNCTION_CALL": "malformed_function_call",
        "NEED_MORE_INPUT": "need_more_input",
    }
    for word, told in reasons.items():
        over = (CAME, {"serverContent": {"turnComplete": True, "turnCompleteReason": word}})
        (call,) = session(LIVE, SET_UP, QUESTION, over)
        assert outcome(call) == ("", "", [told], None)
        assert "gen_ai.output.messages" not in call.attributes
    sound = (SENT, {"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm"}}})
    refused = {"turnComplete": True, "turnCompleteReason": "PROHIBITED_INPUT_CONTENT"}
    (call,) = session(LIVE, SET_UP, sound, (CAME, {"serverContent": refused}))
    assert outcome(call) == ("", "", ["content_filter"], None)
    assert session(LIVE, SET_UP, sound, OVER) == []


def test_a_live_answer_is_interrupted_by_a_question():
    interrupted = (CAME, {"serverContent": {"interrupted": True}})
    first, second = session(
        LIVE, SET_UP, QUESTION, PIECE, QUESTION, interrupted, OVER, PIECE, OVER, (SENT, closed(1000))
    )
    assert outcome(first) == ("", "", ["interrupted"], None)
    assert outcome(second) == ("", "", ["stop"], None)
    assert (second.started_ns, second.first_ns, second.ended_ns) == (3 * 10**9, 6 * 10**9, 7 * 10**9)
    (alone,) = session(LIVE, SET_UP, QUESTION, PIECE, interrupted, OVER, (SENT, closed(1000)))
    assert outcome(alone) == ("", "", ["interrupted"], None)


def test_a_live_answer_is_made_before_its_turn_is_over():
    made = (CAME, {"serverContent": {"generationComplete": True}})
    (call,) = session(LIVE, SET_UP, QUESTION, PIECE, made, (SENT, closed(1000)))
    assert (outcome(call), call.ended_ns) == (("", "", ["stop"], None), 3 * 10**9)


def test_an_error_in_a_live_session():
    error = {"code": 429, "message": "Later", "status": "RESOURCE_EXHAUSTED"}
    half = HALVES["gemini"][1]
    for message in (error, {"error": error}):
        (call,) = session(LIVE, *half, (CAME, message))
        assert outcome(call) == ("RESOURCE_EXHAUSTED", "Later", ["error"], None)
        (call,) = session(LIVE, *half[:2], (CAME, message))
        assert outcome(call)[:2] == ("RESOURCE_EXHAUSTED", "Later")
        assert session(LIVE, SET_UP, (CAME, message)) == []


def test_the_context_of_a_live_session_changes():
    tools = {"tools": [{"functionDeclarations": [{"name": "weather"}]}]}
    update = {"systemInstruction": {"parts": [{"text": "Sing."}]}, "tools": tools}
    first, second = session(
        LIVE,
        SET_UP,
        (CAME, {"setupComplete": {"sessionId": "s1"}}),
        QUESTION,
        PIECE,
        OVER,
        (SENT, {"contextUpdate": update}),
        QUESTION,
        PIECE,
        OVER,
    )
    assert "gen_ai.system_instructions" not in first.attributes
    assert content(second, "system_instructions")[0]["content"] == "Sing."
    assert content(second, "tool.definitions")[0]["name"] == "weather"
    assert second.attributes["gen_ai.conversation.id"] == "s1"
    assert second.attributes["gen_ai.request.model"] == "gemini-live"


def test_a_live_session_with_a_token_for_one_session():
    assert realtime_wire(LIVE + "Constrained?access_token=t") == "gemini.live"
