"""OpenAI's Responses API over a WebSocket: each response is a call, as one over HTTP is."""

from typing import Any

import pytest
from support.answers.spoken_sessions import CAME, RESPONSES, SENT, closed, content, session

from playhead_genai.providers.realtime.calls import RealtimeCall
from playhead_genai.providers.realtime.connection import realtime_wire
from playhead_semconv import attributes as a

SECOND = 10**9
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'}
USAGE = {
    "input_tokens": 30,
    "output_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens_details": {"reasoning_tokens": 2},
}


def asked(said: Any = "Hello", lane: str = "", **more: Any) -> tuple[bool, Any]:
    return SENT, {"type": "response.create", "model": "gpt-5", "input": said} | more | _in(lane)


def state(
    kind: str, identity: str = "r1", said: str = "", lane: str = "", **more: Any
) -> tuple[bool, Any]:
    """An event with the whole response."""
    output = [_message(said)] if said else []
    status = "in_progress" if kind == "created" else kind
    response = {"id": identity, "model": "gpt-5-2026", "status": status, "output": output}
    return CAME, {"type": f"response.{kind}", "response": response | more} | _in(lane)


def delta(said: str, lane: str = "") -> tuple[bool, Any]:
    place = {"item_id": "i1", "output_index": 0, "content_index": 0}
    return CAME, {"type": "response.output_text.delta", **place, "delta": said} | _in(lane)


def error(code: str, **more: Any) -> tuple[bool, Any]:
    return CAME, {"type": "error", "error": {"type": "x", "code": code, "message": "No"}} | more


def steer(said: str, before: str) -> tuple[bool, Any]:
    return SENT, {"type": "response.steer", "previous_response_id": before, "input": said}


def said_in(call: RealtimeCall, name: str) -> list[Any]:
    return [part.get("content") for one in content(call, name) for part in one["parts"]]


def outcome(call: RealtimeCall) -> tuple[Any, ...]:
    told = call.attributes
    reasons = told.get("gen_ai.response.finish_reasons")
    return call.error_type, call.error_message, reasons, told.get("playhead.end.how")


def _in(lane: str) -> dict[str, Any]:
    return {"stream_id": lane} if lane else {}


def _message(said: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": said}]
    return {"id": "i1", "type": "message", "role": "assistant", "content": content}


def test_a_conversation():
    result = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
    settings: dict[str, Any] = {"instructions": "Be brief.", "tools": [TOOL]}
    first, second = session(
        RESPONSES,
        asked("How is it in Oslo?", temperature=0.5, max_output_tokens=99, **settings),
        state("created"),
        state("completed", output=[CALL], usage=USAGE),
        asked([result], previous_response_id="r1"),
        state("created", "r2"),
        delta("It ra"),
        delta("ins"),
        state("completed", "r2", "It rains", usage=USAGE),
    )
    at = first.attributes
    assert at["playhead.wire"] == "openai.responses_websocket"
    assert (at["gen_ai.operation.name"], at["gen_ai.request.model"]) == ("chat", "gpt-5")
    assert (at["gen_ai.response.id"], at["gen_ai.response.model"]) == ("r1", "gpt-5-2026")
    assert (at["gen_ai.request.temperature"], at["gen_ai.request.max_tokens"]) == (0.5, 99)
    assert (at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]) == (30, 9)
    assert at["gen_ai.usage.cache_read.input_tokens"] == 4
    assert at["gen_ai.usage.reasoning.output_tokens"] == 2
    assert (at["gen_ai.request.stream"], at["openai.api.type"]) == (True, "responses")
    assert at["gen_ai.response.time_to_first_chunk"] == 1
    assert at["playhead.tool.called"] == ["weather"]
    assert outcome(first) == ("", "", ["tool_call"], None)
    assert content(first, "system_instructions")[0]["content"] == "Be brief."
    assert content(first, "tool.definitions")[0]["name"] == "weather"
    assert said_in(first, "input.messages") == ["How is it in Oslo?"]
    assert content(first, "output.messages")[0]["parts"][0]["arguments"] == {"city": "Oslo"}
    assert (first.started_ns, first.first_ns, first.ended_ns) == (0, SECOND, 2 * SECOND)
    at = second.attributes
    assert at[a.GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID] == "r1"
    assert "gen_ai.tool.definitions" not in at
    (answered,) = content(second, "input.messages")
    assert (answered["role"], answered["parts"][0]["response"]) == ("tool", "rain")
    assert said_in(second, "output.messages") == ["It rains"]
    assert (second.started_ns, second.ended_ns) == (3 * SECOND, 7 * SECOND)


def test_lanes():
    """Two responses are given at the same time, and a third waits in the lane of the first."""
    first, second, third = session(
        RESPONSES,
        asked("One", "a"),
        asked("Two", "b"),
        asked("Three", "a"),
        state("created", "r2", lane="b"),
        state("created", "r1", lane="a"),
        delta("1", "a"),
        delta("2", "b"),
        state("completed", "r1", "1", "a"),
        state("created", "r3", lane="a"),
        delta("3", "a"),
        (CAME, closed(1011, "Later")),
    )
    for call, said, reason, told in (
        (first, "1", "stop", ""),
        (second, "2", "error", "1011"),
        (third, "3", "error", "1011"),
    ):
        assert said_in(call, "output.messages") == [said]
        assert (call.error_type, call.attributes["gen_ai.response.finish_reasons"]) == (told, [reason])
    assert [call.attributes["gen_ai.response.id"] for call in (first, second, third)] == [
        "r1",
        "r2",
        "r3",
    ]


def test_what_is_left_or_cut():
    half = (asked(), state("created"), delta("Hi"))
    (call,) = session(RESPONSES, *half, (SENT, closed(1000)))
    assert (outcome(call), said_in(call, "output.messages")) == (
        ("", "", ["error"], "abandoned"),
        ["Hi"],
    )
    (call,) = session(RESPONSES, *half, (CAME, closed(1000)))
    assert outcome(call) == ("truncated_response", "", ["error"], None)
    (call,) = session(RESPONSES, *half, (CAME, b"{"), state("completed", said="Hi"))
    assert outcome(call) == ("malformed_response", "a message is no JSON object", ["stop"], None)
    (call,) = session(RESPONSES, asked(), (SENT, closed(1000)))
    assert (outcome(call), call.ended_ns) == (("", "", None, "abandoned"), SECOND)
    assert "gen_ai.output.messages" not in call.attributes
    (call,) = session(RESPONSES, *half)
    assert (outcome(call), call.ended_ns) == (("", "", ["error"], None), None)


def test_why_a_response_is_over():
    half, later = (asked(), state("created")), {"code": "overloaded", "message": "Later"}
    limit = {"incomplete_details": {"reason": "max_output_tokens"}}
    for last, told in (
        (state("incomplete", **limit), ("", "", ["length"], None)),
        (state("failed", error=later), ("overloaded", "Later", ["error"], None)),
        (state("failed"), ("failed", "", ["error"], None)),
    ):
        (call,) = session(RESPONSES, *half, last)
        assert (outcome(call), call.ended_ns) == (told, 2 * SECOND)


@pytest.mark.parametrize(
    ("messages", "errors"),
    [
        (
            [asked(), error("bad", status=400), asked(), state("created"), state("completed")],
            ["bad", ""],
        ),
        ([asked(), state("created"), error("bad", sequence_number=2)], ["bad"]),
        (
            [
                asked(),
                state("created"),
                error("bad", sequence_number=2),
                state("failed", error={"code": "bad", "message": "No"}),
                asked(),
                state("created", "r2"),
                state("completed", "r2"),
            ],
            ["bad", ""],
        ),
        ([asked(), asked(), state("created"), error("in_flight", status=400)], ["", "in_flight"]),
        ([asked(lane="a"), state("created", lane="a"), error("limit"), (CAME, closed(1000))], ["limit"]),
        ([asked(lane="a"), error("limit"), asked(lane="b"), (SENT, closed(1000))], ["limit", ""]),
        ([error("limit")], []),
    ],
)
def test_what_an_error_is_about(messages, errors):
    calls = session(RESPONSES, *messages)
    assert [call.error_type for call in calls] == errors
    assert all(call.error_message == "No" for call in calls if call.error_type)


def test_an_error_as_an_event_of_a_stream():
    said = {"type": "error", "code": "bad", "message": "No", "sequence_number": 1}
    (call,) = session(RESPONSES, asked(), state("created"), (CAME, said))
    assert (outcome(call), call.ended_ns) == (("bad", "No", ["error"], None), 2 * SECOND)


def test_a_response_is_steered():
    """What follows by itself asks with the settings of the one before, and what it was steered with."""
    over = {"incomplete_details": {"reason": "steered"}}
    first, second = session(
        RESPONSES,
        asked(instructions="Be brief."),
        state("created"),
        steer("Faster", "r1"),
        steer("No, slower", "r1"),
        (CAME, {"type": "response.steer.accepted", "steer": {"id": "s1", "previous_response_id": "r1"}}),
        (
            CAME,
            {
                "type": "response.steer.failed",
                "steer": {"previous_response_id": "r1", "input": "No, slower"},
            },
        ),
        state("incomplete", **over),
        state("created", "r2", previous_response_id="r1"),
        state("completed", "r2", "Yes", previous_response_id="r1"),
    )
    assert outcome(first) == ("", "", ["steered"], None)
    assert said_in(second, "input.messages") == ["Faster"]
    assert said_in(second, "output.messages") == ["Yes"]
    assert content(second, "system_instructions")[0]["content"] == "Be brief."
    assert second.attributes[a.GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID] == "r1"
    assert (second.started_ns, second.ended_ns) == (2 * SECOND, 8 * SECOND)


def test_a_response_is_steered_while_it_waits_for_a_tool():
    result = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
    _, second = session(
        RESPONSES,
        asked(),
        state("created"),
        steer("Faster", "r1"),
        state("completed", output=[CALL]),
        asked([result], previous_response_id="r1"),
        state("created", "r2", previous_response_id="r1"),
        state("completed", "r2", "Yes"),
    )
    first, tool = content(second, "input.messages")
    assert (first["parts"][0]["content"], tool["role"]) == ("Faster", "tool")


def test_what_is_no_conversation():
    assert realtime_wire(RESPONSES) == "openai.responses_websocket"
    assert session(RESPONSES, (SENT, {"type": "hello"}), (CAME, {"type": "response.created"})) == []
    assert session(RESPONSES, (SENT, {"type": "response.create"}), state("created")) == []
