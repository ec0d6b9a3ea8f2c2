"""The model calls that the spans of a run tell of, as a tape that can answer them again."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from playhead_core.boundaries import EXCHANGES, names, selected
from playhead_core.facts import Content, ExchangeId, Fact, digest_of
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_genai.messages import InputMessage, OutputMessage, Text, plain
from playhead_genai.rebuilding.calls import KIND, Asked, ModelAnswer, RebuildableCall, answer_of, asked
from playhead_genai.rebuilding.tools import KIND as TOOL
from playhead_genai.steps import Role
from playhead_replay.run.command import Command
from playhead_replay.run.messages import Messages
from playhead_replay.run.run import Run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step, role_of
from playhead_replay.semantic.tools_of_run import ToolOfRun
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_VECTOR = re.compile(r"embedding\.embeddings\.(\d{1,6})\.embedding\.(vector|text)")
"""Vectors and texts in the attributes of OpenInference."""
_REASON = re.compile(r"gen_ai\.completion\.(\d{1,6})\.finish_reason")
"""Finish reasons in the attributes of OpenLLMetry."""
_STATUS = re.compile(r"Error code: (\d{3})\b")
"""In the texts of errors of OpenAI's and Anthropic's SDKs."""


@dataclass(frozen=True, slots=True)
class CallOfRun:
    """A call of a model that spans describe."""

    step: Step
    call: RebuildableCall

    @property
    def name(self) -> str:
        """``step 2 chat gpt-4o``."""
        return f"step {self.step.number} {self.step.span.name}"

    @property
    def response_id(self) -> str:
        """Id of the response; empty if the span has none."""
        return str(self.step.span.attributes.get(a.GEN_AI_RESPONSE_ID) or "")

    def tells_of(self, other: CallOfRun) -> bool:
        """Whether the span of another instrumentation overlaps that of a call with the same response."""
        own, its = self.step.span, other.step.span
        starts, ends = max(own.started_ns, its.started_ns), (own.ended_ns or 0, its.ended_ns or 0)
        return own.name != its.name and starts <= min(ends)

    def says_more(self, other: CallOfRun) -> bool:
        """Whether it is the only one of two with an answer; or the first, if both have as much."""
        if bool(self.why_not) == bool(other.why_not):
            return self.step.number < other.step.number
        return not self.why_not

    def is_told_by(self, other: CallOfRun) -> bool:
        """Whether ``other`` has the answer to it: the same messages were sent at the same time."""
        own, its = self.step.span, other.step.span
        starts, ends = max(own.started_ns, its.started_ns), (own.ended_ns or 0, its.ended_ns or 0)
        return starts <= min(ends) and self.call.asked.messages == other.call.asked.messages

    @property
    def why_not(self) -> str:
        """Why it cannot be answered again; empty: it can."""
        if not self.call.answer.is_empty:
            return ""
        if self.step.span.pending:
            return "it has no end"
        return "its spans have no vectors" if self.call.asked.embeds else "its spans have no answer"


def calls_of(run: Run) -> list[CallOfRun]:
    """Return the model calls in the order of their starts."""
    steps = sorted(run.calls, key=lambda step: step.span.started_ns)
    by_id = {span.span_id: span for span in run.spans}
    others = {step.span.span_id for step in run.steps}
    found = [CallOfRun(step, _call(run, step, _around(step.span, by_id, others))) for step in steps]
    return list(_each_once(found))


def taking_part(calls: Sequence[CallOfRun]) -> list[CallOfRun]:
    """Return the calls that answer, and those that are known to have been made without their answers.

    Otherwise another call would answer in place of the latter.
    """
    answering = [one for one in calls if not one.why_not]
    return [
        one
        for one in calls
        if not one.why_not or (one.call.asked.messages and not any(map(one.is_told_by, answering)))
    ]


def _each_once(calls: Sequence[CallOfRun]) -> Iterator[CallOfRun]:
    """Yield each call once, also if spans of two instrumentations describe it.

    Such spans overlap, have different names and the same id of the response. An SDK may have spans of
    its own; they are beside those of an instrumentation that does not make its span the current one.
    """
    by_response: dict[str, list[CallOfRun]] = {}
    for one in calls:
        by_response.setdefault(one.response_id, []).append(one)
    for one in calls:
        others = by_response[one.response_id] if one.response_id else ()
        if not any(other.tells_of(one) and other.says_more(one) for other in others):
            yield one


def _around(span: Span, by_id: Mapping[str, Span], steps: Container[str]) -> Iterator[Span]:
    """Yield the spans around ``span`` that tell of the same call, innermost first."""
    seen = {span.span_id}
    while (parent := by_id.get(span.parent_id)) and parent.span_id not in seen:
        if parent.span_id in steps or role_of(parent) < Role.CALL:
            return
        seen.add(parent.span_id)
        yield parent
        span = parent


def _call(run: Run, step: Step, around: Iterable[Span]) -> RebuildableCall:
    """Return what is asked and answered, by the first span of the call that says it."""
    inside = (span for span in step.span.walk() if span is not step.span and _speaks(span))
    readings = [_reading(run, span, step) for span in (step.span, *around, *inside)]
    answered = next((one for one in readings if not one.answer.is_empty), readings[0])
    asks = (one.asked for one in (answered, *readings) if one.asked.messages)
    return RebuildableCall(next(asks, answered.asked), answered.answer)


def _speaks(span: Span) -> bool:
    return any(name.startswith(("gen_ai.", "llm.")) for name in span.attributes)


def _reading(run: Run, span: Span, step: Step) -> RebuildableCall:
    messages = run.messages(Step(step.number, span))
    return RebuildableCall(_asked(span, messages), _answer(span, span.attributes, messages))


def _asked(span: Span, messages: Messages) -> Asked:
    sent = messages.input
    if not sent:
        texts = [value for _, kind, value in _embedded(span.attributes) if kind == "text"]
        sent = [InputMessage(role="user", parts=[Text(content=str(one))]) for one in texts]
    model = span.attributes.get(a.GEN_AI_REQUEST_MODEL) or span.attributes.get(a.GEN_AI_RESPONSE_MODEL)
    return asked(span.operation, str(model or ""), messages.system, sent, messages.tools)


def _answer(span: Span, at: Mapping[str, Any], messages: Messages) -> ModelAnswer:
    said = [plain(one) for one in messages.output if _says(one)]
    failed = span.failed and not said
    reasons = at.get(a.GEN_AI_RESPONSE_FINISH_REASONS)
    if reasons is None:
        found = sorted((int(one[1]), at[one[0]]) for name in at if (one := _REASON.fullmatch(name)))
        reasons = [str(reason) for _, reason in found]
    spoken = {
        **at,
        a.GEN_AI_OUTPUT_MESSAGES: said,
        a.GEN_AI_RESPONSE_FINISH_REASONS: reasons,
        a.ERROR_TYPE: _error_type(span) if failed else "",
    }
    seconds = (span.ended_ns or span.started_ns) // 1_000_000_000
    found = answer_of(spoken, created_s=seconds, error_message=span.status_message)
    if failed:
        found = msgspec.structs.replace(found, error_status=_error_status(span))
    vectors = [
        [float(number) for number in cast("Sequence[Any]", value)]
        for _, kind, value in _embedded(at)
        if kind == "vector" and _is_vector(value)
    ]
    return msgspec.structs.replace(found, vectors=vectors) if vectors else found


def _says(message: OutputMessage) -> bool:
    return any(not isinstance(part, Text) or part.content for part in message.parts)


def _embedded(at: Mapping[str, Any]) -> Iterator[tuple[int, str, Any]]:
    found = [(int(one[1]), one[2], at[name]) for name in at if (one := _VECTOR.fullmatch(name))]
    yield from sorted(found, key=lambda one: one[0])


def _is_vector(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(one, int | float) for one in cast("Sequence[Any]", value)
    )


def _error_status(span: Span) -> int:
    """Return the HTTP status of the last attempt, as the spans of an HTTP client have it; else 0."""
    said = [one.attributes.get(a.HTTP_RESPONSE_STATUS_CODE) for one in span.walk()]
    return next((one for one in reversed(said) if isinstance(one, int) and one >= 400), 0)


def _error_type(span: Span) -> str:
    """Return the class of the error, or its HTTP status if only the text says what it was."""
    raised = [one.attributes for one in span.events if one.name == "exception"]
    types = (str(one["exception.type"]) for one in raised if one.get("exception.type"))
    said = str(span.attributes.get(a.ERROR_TYPE) or next(types, "_OTHER"))
    if said not in ("_OTHER", "Exception"):
        return said
    texts = (span.status_message, *(str(one.get("exception.message", "")) for one in raised))
    return next((found[1] for text in texts if (found := _STATUS.search(text))), said)


def semantic_tape(
    run: Run, calls: Sequence[CallOfRun], tools: Sequence[ToolOfRun], command: Command
) -> MemoryTape:
    """Return a tape that starts ``command`` and answers ``calls``, then ``tools``.

    No process has recorded it.
    """
    trace_id = bytes.fromhex(run.trace_id)
    started: dict[str, Any] = {
        **command.attributes(),
        a.PLAYHEAD_RUN_BOUNDARIES: list(names(selected(EXCHANGES, ""))),
    }
    facts = [Fact(run.started_ns, 0, e.PLAYHEAD_PROCESS_START, trace_id, attributes=started)]
    answers = [(one.step.span, KIND, one.call.encoded()) for one in calls]
    answers += [(one.span, TOOL, one.tool.encoded()) for one in tools]
    for number, (span, kind, encoded) in enumerate(answers):
        asks = {a.PLAYHEAD_ASK_KEY: span.span_id, a.PLAYHEAD_ASK_EFFECT: "read"}
        ids = trace_id, bytes.fromhex(span.span_id), ExchangeId(0, kind, number)
        body = Content.of(encoded)
        fact = Fact(span.started_ns, 0, e.PLAYHEAD_EXCHANGE_REQUEST, *ids, attributes=asks, body=body)
        facts.append(fact)
    ended_ns = max([run.ended_ns or run.started_ns, *(fact.time_ns for fact in facts)])
    facts.append(Fact(ended_ns, 0, e.PLAYHEAD_PROCESS_EXIT, trace_id))
    instance = digest_of(b"semantic " + trace_id)[:16]
    return MemoryTape(
        [msgspec.structs.replace(fact, instance=instance, seq=seq) for seq, fact in enumerate(facts)],
        instance,
    )
