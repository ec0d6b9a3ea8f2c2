"""What a scripted provider says in a session of OpenAI's Realtime API, by case."""

from __future__ import annotations

from typing import Any

from support.talks.program import ABOUT, HELLO, INSTRUCTIONS, MODEL, PIXEL, SCHEMA, TOOL
from support.talks.server import HOLD, LATE, Close, Cut, Hear, InFrames, Ping, Refuse, Script, Step

USAGE = {
    "input_tokens": 12,
    "output_tokens": 5,
    "input_token_details": {"text_tokens": 12, "cached_tokens": 3},
    "output_token_details": {"text_tokens": 5},
}
NO = {"type": "invalid_request_error", "code": "invalid_value", "message": "No", "event_id": "ask"}
GONE = {"type": "server_error", "code": "session_expired", "message": "Too long"}
LATER = {"type": "server_error", "code": "overloaded", "message": "Later"}
SESSION = {"id": "sess_1", "type": "realtime", "model": MODEL}
SAID = {"type": "input_text", "text": HELLO}
SHOWN = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
OPENED: list[Step] = [
    {"type": "session.created", "event_id": "e0", "session": SESSION},
    Hear(),
    {"type": "session.updated", "event_id": "e1", "session": {"instructions": INSTRUCTIONS}},
]


DEFINED = {"type": "function", "name": TOOL, "description": ABOUT, "parameters": SCHEMA}
EQUIPPED: list[Step] = [
    *OPENED[:2],
    {
        "type": "session.updated",
        "event_id": "e1",
        "session": {"instructions": INSTRUCTIONS, "tools": [DEFINED]},
    },
]


def added(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "conversation.item.added", "event_id": "e2", "item": item}


def begun(identity: str = "resp_1") -> dict[str, Any]:
    said = {"id": identity, "object": "realtime.response", "status": "in_progress", "output": []}
    return {
        "type": "response.created",
        "event_id": "e3",
        "response": said | {"conversation_id": "conv_1"},
    }


def delta(text: str, identity: str = "resp_1") -> dict[str, Any]:
    place = {"response_id": identity, "item_id": "said", "output_index": 0, "content_index": 0}
    return {"type": "response.output_text.delta", "event_id": "e4", **place, "delta": text}


def done(output: list[Any], status: str = "completed", identity: str = "resp_1", **why: Any) -> Any:
    said: dict[str, Any] = {"id": identity, "object": "realtime.response", "status": status}
    said |= {"output": output, "conversation_id": "conv_1", "usage": USAGE}
    if why:
        said["status_details"] = {"type": status, **why}
    return {"type": "response.done", "event_id": "e5", "response": said}


def message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"id": "said", "type": "message", "role": "assistant", "content": content}


def call(number: int, city: str) -> dict[str, Any]:
    arguments = f'{{"city":"{city}"}}'
    return {
        "id": f"call_{number}",
        "type": "function_call",
        "call_id": f"c-{number}",
        "name": TOOL,
        "arguments": arguments,
    }


def result(number: int) -> dict[str, Any]:
    return {
        "id": f"out_{number}",
        "type": "function_call_output",
        "call_id": f"c-{number}",
        "output": "sunny",
    }


def asked(*content: dict[str, Any]) -> list[Step]:
    item = {"id": "i1", "type": "message", "role": "user", "content": [*content]}
    return [Hear(), added(item), Hear()]


QUESTION = asked(SAID)
HALF: list[Step] = [*OPENED, *QUESTION, begun(), delta("Hi")]
WHOLE: list[Step] = [delta(" there"), done([message("Hi there")]), HOLD]
SPOKEN = {"id": "i2", "type": "message", "role": "user", "content": [{"type": "input_audio"}]}
HEARD = {
    "type": "conversation.item.input_audio_transcription.completed",
    "event_id": "e6",
    "item_id": "i2",
    "content_index": 0,
    "transcript": "Stop",
}


def with_tools(*calls: dict[str, Any]) -> Script:
    results = [result(number) for number in range(1, len(calls) + 1)]
    answers: list[Step] = [step for one in results for step in (Hear(), added(one))]
    ends = [begun("resp_2"), delta("Sunny", "resp_2"), done([message("Sunny")], identity="resp_2")]
    return [*EQUIPPED, *QUESTION, begun(), done([*calls]), *answers, Hear(), *ends, HOLD]


AGAIN: Script = [OPENED[0], *QUESTION, begun(), delta("Hi"), *WHOLE]
"""On a new connection after one that was lost."""

SCRIPTS: dict[str, list[Script]] = {
    "plain": [[*HALF, *WHOLE]],
    "image": [[*OPENED, *asked(SAID, SHOWN), begun(), delta("Hi"), *WHOLE]],
    "tools": [with_tools(call(1, "Oslo"))],
    "parallel": [with_tools(call(1, "Oslo"), call(2, "Rome"))],
    "refusal": [[*HALF, done([message("Hi")], "incomplete", reason="content_filter"), HOLD]],
    "length": [[*HALF, done([message("Hi")], "incomplete", reason="max_output_tokens"), HOLD]],
    "failed": [[*HALF, done([], "failed", error=LATER), HOLD]],
    "invalid": [[*OPENED, *QUESTION, {"type": "error", "event_id": "e7", "error": NO}, HOLD]],
    "session error": [[*HALF, {"type": "error", "event_id": "e7", "error": GONE}, Close(1001, "bye")]],
    "closed": [[*HALF, Close(1011, "Later")]],
    "closed early": [[*HALF, Close(1000)]],
    "cut": [[*HALF, Cut()]],
    "torn": [[*HALF, Cut(b"\x81\x7e\x01\x00half")]],
    "noise": [[*HALF, Cut(b"\xff\xff\xff\xff")]],
    "no json": [[*HALF, '{"type": "response.', HOLD]],
    "no object": [[*HALF, [1], *WHOLE]],
    "wrong shape": [[*HALF, delta("") | {"response_id": 7, "delta": {"a": 1}}, *WHOLE]],
    "unknown": [[*HALF, {"type": "response.of.tomorrow", "event_id": "e8"}, *WHOLE]],
    "frames": [[*HALF, Ping(b"there?"), InFrames(delta(" there")), WHOLE[1], HOLD]],
    "huge": [[*HALF, delta("!" * 3_000_000), *WHOLE]],
    "refused": [[Refuse(401, '{"error": {"message": "who are you"}}')]],
    "limited": [[Refuse(429, '{"error": {"message": "slow down"}}')]],
    "late": [[LATE]],
    "left": [[*HALF, HOLD]],
    "unanswered": [[*OPENED, *QUESTION, HOLD]],
    "stopped": [[*HALF, Hear(), done([message("Hi")], "cancelled", reason="client_cancelled"), HOLD]],
    "interrupted": [
        [
            *HALF,
            Hear(),
            {"type": "input_audio_buffer.speech_started", "event_id": "e9", "item_id": "i2"},
            done([message("Hi")], "cancelled", reason="turn_detected"),
            {"type": "input_audio_buffer.committed", "event_id": "e10", "item_id": "i2"},
            added(SPOKEN),
            begun("resp_2"),
            HEARD,
            delta("Yes", "resp_2"),
            done([message("Yes")], identity="resp_2"),
            HOLD,
        ]
    ],
    "cancelled": [[*HALF, HOLD]],
    "waited": [[*HALF, HOLD]],
    "resumed": [
        [*HALF, Close(1012, "restart")],
        AGAIN,
    ],
    "resumed late": [
        [*HALF, Close(1012, "restart")],
        [Refuse(503, "Later")],
        AGAIN,
    ],
}
ASYNC = ("cancelled",)
"""Cases that a blocking client has no means for."""
