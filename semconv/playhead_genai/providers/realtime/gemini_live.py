"""Gemini's Live API: a session over a WebSocket, ``…BidiGenerateContent``. Each answer is a call.

An answer ends with its turn, or where the model calls functions. What was asked and got no answer is a
call, too; the end of a spoken question is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import (
    FinishReason,
    InputMessage,
    OutputMessage,
    Part,
    Text,
    ToolCallResponse,
    to_json,
)
from playhead_genai.providers.dialect import ResponseContent, error_of
from playhead_genai.providers.google.generate_content import GeminiGenerateContent
from playhead_genai.providers.google.parts import camel, content_parts, usage_of
from playhead_genai.providers.google.stream_fold import ContentFold
from playhead_genai.providers.merging import updated_counts
from playhead_genai.providers.reading import Object, mapping, sequence, text, without_none
from playhead_genai.providers.realtime.calls import RealtimeCall, SessionMessage
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

_REFUSED = ("PROHIBITED", "SAFETY", "BLOCKLIST", "REJECTED", "CELEBRITY", "INPUT_OTHER", "GENERATED_")
"""Parts of the words for why a turn is over that mean: it is refused, or what was made is held back."""
_NO_REASONS = ("", "TURN_COMPLETE_REASON_UNSPECIFIED")


class _Answer:
    def __init__(self, started_ns: int, setup: Object, inputs: list[InputMessage]) -> None:
        self.call = RealtimeCall(started_ns)
        self.setup = setup
        """As it was when the answer began."""
        self.inputs = inputs
        self.fold = ContentFold()
        self.heard: list[str] = []
        """What the user said aloud."""
        self.spoken: list[str] = []
        """What the model said aloud."""
        self.reason = ""
        self.usage: Object = {}

    def piece(self, parts: list[Any], time_ns: int) -> None:
        """Add parts of the answer; audio stays in the exchange."""
        self.call.first_ns = self.call.first_ns or time_ns
        kept = [part for part in parts if "inlineData" not in camel(part)]
        if kept:
            self.fold.event("", {"candidates": [{"content": {"role": "model", "parts": kept}}]})


class GeminiLiveFold:
    """Joins the messages of a connection into calls."""

    def __init__(self) -> None:
        self._setup: Object | None = None
        self._conversation: str | None = None
        self._asked_ns = 0
        self._waits = False
        """Whether the program has asked for an answer that has not begun."""
        self._interrupted = False
        """Whether the turn of an interrupted answer is still to be ended."""
        self._inputs: list[InputMessage] = []
        self._heard: list[str] = []
        self._open: _Answer | None = None
        self._answers: list[_Answer] = []
        self._readers: dict[tuple[bool, str], Callable[[Any, int], None]] = {
            (True, "setup"): self._set_up,
            (True, "clientContent"): self._said,
            (True, "realtimeInput"): self._streamed,
            (True, "toolResponse"): self._tool_answered,
            (True, "contextUpdate"): self._updated,
            (False, "setupComplete"): self._begun,
            (False, "serverContent"): self._content,
            (False, "toolCall"): self._tool_called,
            (False, "usageMetadata"): self._used,
            (False, "error"): self._failed,
        }

    def message(self, message: SessionMessage) -> None:
        """Add the next message."""
        if message.value is None:
            if self._open is not None and not message.sent:
                self._open.call.malformed()
            return
        fields = camel(message.value)
        if not message.sent and "code" in fields:
            fields = {"error": fields}
        for name, value in sorted(fields.items()):  # what was said before what it used
            read = self._readers.get((message.sent, name))
            if read is not None:
                read(value, message.time_ns)

    def calls(self) -> list[RealtimeCall]:
        """Return the calls, also of what was asked and never answered; none if no session was set up."""
        if self._setup is None:
            return []
        if self._waits:
            self._answer(self._asked_ns)
        return [_call(one, self._conversation) for one in self._answers]

    def _set_up(self, value: Any, time_ns: int) -> None:
        self._setup = camel(value)

    def _begun(self, value: Any, time_ns: int) -> None:
        self._conversation = text(camel(value).get("sessionId"))

    def _updated(self, value: Any, time_ns: int) -> None:
        update = camel(value)
        if "tools" in update:
            update["tools"] = mapping(update["tools"]).get("tools", [])
        self._setup = (self._setup or {}) | update

    def _asked(self, time_ns: int, waits: bool) -> None:
        self._asked_ns, self._waits = time_ns, self._waits or waits

    def _said(self, value: Any, time_ns: int) -> None:
        said = camel(value)
        self._asked(time_ns, said.get("turnComplete") is True)
        dialect = GeminiGenerateContent()
        self._inputs += [dialect.message(turn) for turn in sequence(said.get("turns"))]

    def _streamed(self, value: Any, time_ns: int) -> None:
        said = text(camel(value).get("text"))
        self._asked(time_ns, said is not None)
        if said is not None:
            self._inputs.append(InputMessage(role="user", parts=[Text(content=said)]))

    def _tool_answered(self, value: Any, time_ns: int) -> None:
        self._asked(time_ns, True)
        parts: list[Part] = [
            ToolCallResponse(id=text(one.get("id")), response=one.get("response"))
            for one in map(mapping, sequence(camel(value).get("functionResponses")))
        ]
        self._inputs.append(InputMessage(role="tool", parts=parts))

    def _content(self, value: Any, time_ns: int) -> None:
        said = camel(value)
        if heard := text(mapping(said.get("inputTranscription")).get("text")):
            (self._heard if self._open is None else self._open.heard).append(heard)
        turn = mapping(said.get("modelTurn"))
        if turn:
            self._answer(time_ns).piece(sequence(turn.get("parts")), time_ns)
        if spoken := text(mapping(said.get("outputTranscription")).get("text")):
            self._answer(time_ns).spoken.append(spoken)
        if said.get("generationComplete") is True and self._open is not None:
            self._open.reason, self._open.call.ended_ns = FinishReason.STOP, time_ns
        if said.get("interrupted") is True:
            self._end("interrupted", time_ns)
            self._interrupted = said.get("turnComplete") is not True
        elif said.get("turnComplete") is True:
            self._turn_over(text(said.get("turnCompleteReason")) or "", time_ns)

    def _turn_over(self, word: str, time_ns: int) -> None:
        if self._interrupted and self._open is None:
            self._interrupted = False
            return
        refused = any(part in word for part in _REFUSED)
        if self._open is None and (self._waits or refused):  # the model says nothing
            self._answer(time_ns)
        reason = FinishReason.STOP if word in _NO_REASONS else word.lower()
        self._end(FinishReason.CONTENT_FILTER if refused else reason, time_ns)

    def _tool_called(self, value: Any, time_ns: int) -> None:
        calls = sequence(camel(value).get("functionCalls"))
        self._answer(time_ns).piece([{"functionCall": call} for call in calls], time_ns)
        self._end(FinishReason.TOOL_CALL, time_ns)

    def _used(self, value: Any, time_ns: int) -> None:
        answer = self._open or (self._answers[-1] if self._answers else None)
        if answer is not None:
            answer.usage = updated_counts(answer.usage, camel(value))

    def _failed(self, value: Any, time_ns: int) -> None:
        """An error is about what is being answered, or about what was asked last."""
        if self._open is not None or self._waits:
            self._answer(time_ns).call.fail(*error_of({"error": value}))
            self._end(FinishReason.ERROR, time_ns)

    def _answer(self, time_ns: int) -> _Answer:
        """Return the answer that is being given; begin one if there is none."""
        if self._open is None:
            self._open = _Answer(self._asked_ns or time_ns, self._setup or {}, self._inputs)
            self._open.heard, self._inputs, self._heard = self._heard, [], []
            self._asked_ns, self._waits, self._interrupted = 0, False, False
            self._answers.append(self._open)
        return self._open

    def _end(self, reason: str, time_ns: int) -> None:
        if self._open is not None:
            self._open.reason, self._open.call.ended_ns = reason, time_ns
            self._open = None


def _call(one: _Answer, conversation: str | None) -> RealtimeCall:
    call = one.call
    call.attributes = _asked_for(one.setup) | without_none({a.GEN_AI_CONVERSATION_ID: conversation})
    inputs = list(one.inputs)
    if one.heard:
        inputs.append(InputMessage(role="user", parts=[Text(content="".join(one.heard))]))
    if inputs:
        call.attributes[a.GEN_AI_INPUT_MESSAGES] = to_json(inputs)
    candidates = sequence(one.fold.body().get("candidates"))
    parts = [part for item in candidates for part in content_parts(mapping(item).get("content"))]
    if one.spoken:
        parts.append(Text(content="".join(one.spoken)))
    messages = [OutputMessage(role="assistant", parts=parts)] if parts else []
    reason = one.reason or (FinishReason.ERROR if call.first_ns is not None or one.spoken else "")
    call.add(ResponseContent(messages, [reason] if reason else [], usage_of(one.usage)))
    return call


def _asked_for(setup: Object) -> dict[str, Value]:
    """Return attributes for what the session was set up with."""
    dialect = GeminiGenerateContent()
    found = dialect.parameters(setup)
    found[a.GEN_AI_OPERATION_NAME] = GenAiOperationName.GENERATE_CONTENT
    if model := text(setup.get("model")):
        found[a.GEN_AI_REQUEST_MODEL] = model.rpartition("/")[2]
    if instructions := dialect.instructions(setup.get("systemInstruction")):
        found[a.GEN_AI_SYSTEM_INSTRUCTIONS] = to_json(instructions)
    if "tools" in setup and (tools := dialect.tools(setup["tools"])):
        found[a.GEN_AI_TOOL_DEFINITIONS] = to_json(tools)
    return found
