"""The expected calls of a session, exactly: the parts that all wires have in common."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from support.talks.program import ABOUT, INSTRUCTIONS, MODEL, SCHEMA, TOOL
from support.talks.server import Script

from playhead_genai.providers import CONTENT_ATTRIBUTES
from playhead_semconv import attributes as a

LOST = "websockets.exceptions.ConnectionClosedError"
USED: dict[str, Any] = {a.GEN_AI_USAGE_INPUT_TOKENS: 12, a.GEN_AI_USAGE_OUTPUT_TOKENS: 5}
TOOLS = [{"type": "function", "name": TOOL, "description": ABOUT, "parameters": SCHEMA}]
DEFINED: dict[str, Any] = {a.GEN_AI_TOOL_DEFINITIONS: TOOLS}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "content": said}


def user(*parts: Any, **more: Any) -> list[Any]:
    return [{"role": "user", "parts": [*parts], **more}]


@dataclass(frozen=True)
class Call:
    """One call of a case, beside what all calls of its wire say."""

    reason: str = ""
    """Why it ended; empty: the answer never began."""
    output: list[Any] = field(default_factory=list[Any])
    """Parts of the answer."""
    error: str = ""
    """``error.type``; empty: no error."""
    left: bool = False
    """Whether the program left before it was over."""
    input: list[Any] | None = None
    """Input messages; None: the user says `HELLO`."""
    whole: bool = True
    """Whether the provider has said what it used."""
    pieces: bool = True
    """Whether the answer came in pieces."""
    more: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Wire:
    """One wire."""

    name: str
    scripts: dict[str, list[Script]]
    calls: dict[str, list[Call]]
    """By case."""
    all_say: dict[str, Any]
    """What every call says."""
    begun: dict[str, Any]
    """What an answer says that has begun."""
    used: dict[str, Any]
    """What the provider says that an answer has used."""
    hello: list[Any]
    """The input messages where the user says `HELLO`."""

    def expected(self, case: str) -> list[dict[str, Any]]:
        """The attributes of the calls of a case, with JSON decoded."""
        return [self._attributes(call) for call in self.calls[case]]

    def _attributes(self, call: Call) -> dict[str, Any]:
        found = {
            a.PLAYHEAD_WIRE: self.name,
            a.GEN_AI_REQUEST_MODEL: MODEL,
            a.GEN_AI_REQUEST_STREAM: True,
            a.GEN_AI_SYSTEM_INSTRUCTIONS: [text(INSTRUCTIONS)],
            a.GEN_AI_INPUT_MESSAGES: self.hello if call.input is None else call.input,
            **self.all_say,
        }
        if call.reason:
            found |= {a.GEN_AI_RESPONSE_FINISH_REASONS: [call.reason], **self.begun}
        if call.output:
            found[a.GEN_AI_OUTPUT_MESSAGES] = [{"role": "assistant", "parts": call.output}]
        if call.whole:
            found |= self.used
        if call.error:
            found[a.ERROR_TYPE] = call.error
        if call.left:
            found[a.PLAYHEAD_END_HOW] = "abandoned"
        found |= call.more
        return {name: value for name, value in found.items() if value is not None}


def settled(attributes: dict[str, Any], call: Call, took_s: float) -> dict[str, Any]:
    """The attributes of a call that took so long, with JSON decoded; those that vary are checked."""
    left = {
        name: json.loads(value) if name in CONTENT_ATTRIBUTES else value
        for name, value in attributes.items()
        if name != a.PLAYHEAD_EXCHANGE_REF
    }
    if call.pieces:
        assert 0 < left.pop(a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK) <= took_s
    return left


HI, HI_THERE, SUNNY, YES = [text("Hi")], [text("Hi there")], [text("Sunny")], [text("Yes")]
LEFT = Call("error", HI, left=True, whole=False)
PLAIN = [Call("stop", HI_THERE)]
COMMON = {
    "plain": PLAIN,
    "frames": PLAIN,
    "closed": [Call("error", HI, "1011", whole=False)],
    "closed early": [Call("error", HI, "truncated_response", whole=False)],
    "cut": [Call("error", HI, LOST, whole=False)],
    "torn": [Call("error", HI, LOST, whole=False)],
    "noise": [Call("error", HI, "websockets.exceptions.ProtocolError", whole=False)],
    "no json": [Call("error", HI, "malformed_response", whole=False)],
    "refused": [],
    "limited": [],
    "late": [],
    "left": [LEFT],
    "unanswered": [Call(left=True, whole=False, pieces=False)],
    "cancelled": [LEFT],
    "waited": [LEFT],
}
"""Case → its calls, where they are the same on all wires."""
