"""What a scripted provider says over a WebSocket of OpenAI's Responses API, by case."""

from __future__ import annotations

from typing import Any

from support.talks.program import MODEL, TOOL
from support.talks.server import HOLD, LATE, Close, Cut, Hear, InFrames, Ping, Refuse, Script, Step

from playhead_cli.demo.shapes import openai_responses

USAGE = openai_responses.usage(12, 5, cached=3)
NO = {"type": "invalid_request_error", "code": "previous_response_not_found", "message": "No"}
GONE = {"type": "server_error", "code": "server_error", "message": "Oh"}
LATER = {"code": "rate_limit_exceeded", "message": "Later"}


def response(kind: str, said: str = "", identity: str = "resp_1", *calls: Any, **more: Any) -> Any:
    """An event with the whole response."""
    status = "in_progress" if kind == "created" else kind
    output = [openai_responses.message(said, id="said"), *calls] if said else [*calls]
    whole = openai_responses.response(output, id=identity, model=MODEL, status=status, usage=USAGE)
    if kind == "created":
        whole |= {"usage": None}
    return {"type": f"response.{kind}", "sequence_number": 0, "response": whole | more}


def delta(text: str) -> dict[str, Any]:
    place = {"item_id": "said", "output_index": 0, "content_index": 0}
    return {"type": "response.output_text.delta", "sequence_number": 1, **place, "delta": text}


def call(number: int, city: str) -> dict[str, Any]:
    arguments = {"city": city}
    return openai_responses.function_call(f"c-{number}", TOOL, arguments, id=f"call_{number}")


def with_tools(*calls: dict[str, Any]) -> Script:
    second = [response("created", identity="resp_2", previous_response_id="resp_1"), delta("Sunny")]
    end = response("completed", "Sunny", "resp_2", previous_response_id="resp_1")
    first = [Hear(), response("created"), response("completed", "", "resp_1", *calls)]
    return [*first, Hear(), *second, end, HOLD]


HALF: list[Step] = [Hear(), response("created"), delta("Hi")]
WHOLE: list[Step] = [delta(" there"), response("completed", "Hi there"), HOLD]
LIMIT = {"incomplete_details": {"reason": "max_output_tokens"}}
UNSAFE = {"incomplete_details": {"reason": "content_filter"}}
STEERED = {"incomplete_details": {"reason": "steered"}}
ACCEPTED = {
    "type": "response.steer.accepted",
    "sequence_number": 2,
    "steer": {"id": "steer_1", "previous_response_id": "resp_1"},
}
SHAPED = '{"city":"Oslo"}'

SCRIPTS: dict[str, list[Script]] = {
    "plain": [[*HALF, *WHOLE]],
    "image": [[*HALF, *WHOLE]],
    "schema": [[*HALF[:2], delta(SHAPED), response("completed", SHAPED), HOLD]],
    "tools": [with_tools(call(1, "Oslo"))],
    "parallel": [with_tools(call(1, "Oslo"), call(2, "Rome"))],
    "refusal": [[*HALF, response("incomplete", "Hi", **UNSAFE), HOLD]],
    "length": [[*HALF, response("incomplete", "Hi", **LIMIT), HOLD]],
    "failed": [[*HALF, response("failed", error=LATER), HOLD]],
    "invalid": [[Hear(), {"type": "error", "status": 400, "error": NO}, HOLD]],
    "session error": [
        [*HALF, {"type": "error", "sequence_number": 2, "error": GONE}, Close(1001, "bye")]
    ],
    "closed": [[*HALF, Close(1011, "Later")]],
    "closed early": [[*HALF, Close(1000)]],
    "cut": [[*HALF, Cut()]],
    "torn": [[*HALF, Cut(b"\x81\x7e\x01\x00half")]],
    "noise": [[*HALF, Cut(b"\xff\xff\xff\xff")]],
    "no json": [[*HALF, '{"type": "response.', HOLD]],
    "no object": [[*HALF, [1], *WHOLE]],
    "wrong shape": [[*HALF, delta("") | {"output_index": "?", "delta": {"a": 1}}, *WHOLE]],
    "unknown": [[*HALF, {"type": "response.of.tomorrow"}, *WHOLE]],
    "frames": [[*HALF, Ping(b"there?"), InFrames(delta(" there")), *WHOLE[1:]]],
    "huge": [[*HALF, delta("!" * 3_000_000), *WHOLE]],
    "refused": [[Refuse(401, '{"error": {"message": "who are you"}}')]],
    "limited": [[Refuse(429, '{"error": {"message": "slow down"}}')]],
    "late": [[LATE]],
    "left": [[*HALF, HOLD]],
    "unanswered": [[Hear(), HOLD]],
    "interrupted": [
        [
            *HALF,
            Hear(),
            ACCEPTED,
            response("incomplete", "Hi", **STEERED),
            response("created", identity="resp_2", previous_response_id="resp_1"),
            delta("Yes"),
            response("completed", "Yes", "resp_2", previous_response_id="resp_1"),
            HOLD,
        ]
    ],
    "cancelled": [[*HALF, HOLD]],
    "waited": [[*HALF, HOLD]],
}
