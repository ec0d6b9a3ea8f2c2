"""What a scripted provider says in a session of Gemini's Live API, by case."""

from __future__ import annotations

from typing import Any

from support.talks.program import TOOL
from support.talks.server import HOLD, LATE, Close, Cut, Hear, InFrames, Ping, Refuse, Script, Step

USAGE = {"promptTokenCount": 12, "responseTokenCount": 5, "totalTokenCount": 17}
OPENED: list[Step] = [Hear(), {"setupComplete": {"sessionId": "live-1"}}]
HELLO: list[Step] = [*OPENED, Hear()]
OVER = {"serverContent": {"turnComplete": True}, "usageMetadata": USAGE}
FAILED = {"code": 503, "message": "Later", "status": "UNAVAILABLE"}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"serverContent": {"modelTurn": {"parts": [{"text": text, **more}]}}}


def over(reason: str) -> dict[str, Any]:
    content = {"turnComplete": True, "turnCompleteReason": reason}
    return {"serverContent": content, "usageMetadata": USAGE}


def calls(*cities: str) -> dict[str, Any]:
    found = [
        {"id": f"c-{number}", "name": TOOL, "args": {"city": city}}
        for number, city in enumerate(cities, 1)
    ]
    return {"toolCall": {"functionCalls": found}, "usageMetadata": USAGE}


HALF: list[Step] = [*HELLO, said("Hi")]
WHOLE: list[Step] = [said(" there"), {"serverContent": {"generationComplete": True}}, OVER, HOLD]
HANDLE = {"sessionResumptionUpdate": {"newHandle": "h-1", "resumable": True}}

SCRIPTS: dict[str, list[Script]] = {
    "plain": [[*HALF, *WHOLE]],
    "image": [[*HALF, *WHOLE]],
    "schema": [[*HELLO, said('{"city":'), said('"Oslo"}'), OVER, HOLD]],
    "reasoning": [[*HELLO, said("Let me think", thought=True), said("Hi"), *WHOLE]],
    "tools": [[*HELLO, calls("Oslo"), Hear(), said("Sunny"), OVER, HOLD]],
    "parallel": [[*HELLO, calls("Oslo", "Rome"), Hear(), said("Sunny"), OVER, HOLD]],
    "refusal": [[*HELLO, over("PROHIBITED_INPUT_CONTENT"), HOLD]],
    "invalid": [[*HELLO, Close(1007, "Request contains an invalid argument.")]],
    "failed": [[*HALF, FAILED, HOLD]],
    "going away": [[*HALF, {"goAway": {"timeLeft": "1s"}}, Close(1001, "going away")]],
    "closed": [[*HALF, Close(1011, "Later")]],
    "closed early": [[*HALF, Close(1000)]],
    "cut": [[*HALF, Cut()]],
    "torn": [[*HALF, Cut(b"\x82\x7e\x01\x00half")]],
    "noise": [[*HALF, Cut(b"\xff\xff\xff\xff")]],
    "no json": [[*HALF, b'{"serverContent"', HOLD]],
    "no object": [[*HALF, [1], HOLD]],
    "wrong shape": [[*HALF, {"serverContent": {"modelTurn": "no"}}, HOLD]],
    "unknown": [[*HALF, {"ofTomorrow": {}}, HOLD]],
    "frames": [[*HALF, Ping(b"there?"), InFrames(said(" there")), OVER, HOLD]],
    "large": [[*HALF, said("!" * 900_000), *WHOLE]],
    "huge": [[*HALF, said("!" * 2_000_000), *WHOLE]],
    "refused": [[Refuse(401, '{"error": {"code": 401, "message": "who are you"}}')]],
    "limited": [[Refuse(429, '{"error": {"code": 429, "message": "slow down"}}')]],
    "late": [[LATE]],
    "left": [[*HALF, HOLD]],
    "unanswered": [[*HELLO, HOLD]],
    "interrupted": [
        [
            *HALF,
            Hear(),
            {"serverContent": {"interrupted": True}},
            OVER,
            {"serverContent": {"inputTranscription": {"text": "Stop"}}},
            said("Yes"),
            OVER,
            HOLD,
        ]
    ],
    "cancelled": [[*HALF, HOLD]],
    "waited": [[*HALF, HOLD]],
    "resumed": [[*HALF, HANDLE, {"goAway": {"timeLeft": "1s"}}, HOLD], [*HALF, *WHOLE]],
}
