"""Steps: what a reader of a run counts. Logical calls and tool executions, in order of start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from playhead_core.untrusted.spans import count_in
from playhead_genai.steps import CALLS, FRAMES, CallTime, Nesting, Role, operation_in
from playhead_replay.run.spans import KIND_CLIENT, KIND_CONSUMER, KIND_SERVER, Span
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName


@dataclass(slots=True)
class Step:
    """A logical call or a tool execution, with the attempts under it."""

    number: int
    """From 1, as `playhead show` prints it."""
    span: Span
    attempts: list[Span] = field(default_factory=list[Span])
    """Spans of its requests; the span itself if it is a bare request."""

    @property
    def retries(self) -> int:
        """Attempts beyond the first."""
        return sum(1 for span in self.attempts if resend_count(span.attributes))


def is_logical(attributes: dict[str, Any]) -> bool:
    """Whether a span with these attributes tells of a call to a model, a tool or another operation."""
    operation = operation_in(attributes)
    return bool(operation) and operation not in FRAMES


def is_request(span: Span) -> bool:
    """Whether this is the span of an outgoing request: HTTP, WebSocket or gRPC."""
    return span.kind == KIND_CLIENT and (a.HTTP_REQUEST_METHOD in span.attributes or is_rpc(span))


def is_rpc(span: Span) -> bool:
    """Whether this is the span of a remote procedure call, by the conventions or by older ones."""
    return a.RPC_SYSTEM_NAME in span.attributes or a.RPC_SYSTEM in span.attributes


def resend_count(attributes: dict[str, Any]) -> int:
    """How many times this request had been sent before."""
    return count_in(attributes, a.HTTP_REQUEST_RESEND_COUNT)


def role_of(span: Span) -> Role:
    """What a span is for the count of steps."""
    at = span.attributes
    if not is_logical(at):
        if span.kind in (KIND_SERVER, KIND_CONSUMER):
            return Role.SERVED
        return Role.REQUEST if is_request(span) else Role.OTHER
    operation = operation_in(at)
    named = at.get(a.GEN_AI_RESPONSE_MODEL) or at.get(a.GEN_AI_REQUEST_MODEL)
    if operation == GenAiOperationName.EXECUTE_TOOL or not (named or operation in CALLS):
        return Role.STEP
    return Role.OWN_CALL if a.PLAYHEAD_WIRE in at else Role.CALL


def nesting_of(roots: Iterable[Span]) -> Nesting[str]:
    """How the spans of a forest enclose each other."""
    spans = [span for root in roots for span in root.walk()]
    above = {child.span_id: span.span_id for span in spans for child in span.children}
    return Nesting(
        ((span.span_id, above.get(span.span_id, ""), role_of(span)) for span in spans),
        lambda: [time_of(span) for span in spans if role_of(span) >= Role.CALL],
    )


def time_of(call: Span) -> CallTime[str]:
    """When a call of a model was."""
    named = (call.attributes.get(name) for name in (a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL))
    models = frozenset(str(model) for model in named if model)
    return CallTime(call.span_id, call.started_ns, call.ended_ns, models)


def number_steps(roots: Iterable[Span]) -> list[Step]:
    """The steps of a forest of spans, numbered in order of their start.

    `playhead_genai.steps` says which spans are steps. A request inside a step is an attempt.
    """
    forest = list(roots)
    nesting = nesting_of(forest)
    steps = [step for root in forest for step in _steps_in(root, None, nesting)]
    steps.sort(key=lambda step: (step.span.started_ns, step.span.seq, step.span.span_id))
    for number, step in enumerate(steps, 1):
        step.number = number
    return steps


def _steps_in(span: Span, enclosing: Step | None, nesting: Nesting[str]) -> Iterator[Step]:
    around: Step | None = None
    told = is_logical(span.attributes)
    if nesting.is_step(span.span_id):
        enclosing = Step(0, span)
        if is_request(span):  # a bare one, or one whose bytes told that it is a call
            enclosing.attempts.append(span)
        yield enclosing
    elif told and nesting.encloses_call(span.span_id):
        enclosing = around = Step(0, span)  # what it asks itself belongs to the call inside it
    elif (
        enclosing is not None and not told and (is_request(span) or a.MCP_METHOD_NAME in span.attributes)
    ):
        enclosing.attempts.append(span)  # also the span that the SDK of MCP puts around a request
    first: Step | None = None
    for child in span.children:
        for step in _steps_in(child, enclosing, nesting):
            first = first or step
            yield step
    if around is not None and first is not None:
        first.attempts[:0] = around.attempts
