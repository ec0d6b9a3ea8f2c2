"""Steps: what a reader of a run counts. Logical calls and tool executions, in order of start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from playhead_core.untrusted.spans import count_in
from playhead_genai.steps import CALLS, FRAMES, CallTime, Nesting, Role, operation_in
from playhead_genai.tool_reports import ToolTime, sources_in
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
        attempts = self.attempts  # most steps have none
        return len([one for one in attempts if resend_count(one.attributes)]) if attempts else 0


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
    operation = at.get(a.GEN_AI_OPERATION_NAME)
    if not isinstance(operation, str) or not operation or operation in FRAMES:
        if span.kind in (KIND_SERVER, KIND_CONSUMER):
            return Role.SERVED
        return Role.REQUEST if is_request(span) else Role.OTHER
    if operation == GenAiOperationName.EXECUTE_TOOL:
        return Role.STEP
    named = at.get(a.GEN_AI_RESPONSE_MODEL) or at.get(a.GEN_AI_REQUEST_MODEL)
    if not (named or operation in CALLS):
        return Role.STEP
    return Role.OWN_CALL if a.PLAYHEAD_WIRE in at else Role.CALL


def nesting_of(roots: Sequence[Span]) -> Nesting[str]:
    """How the spans of a forest enclose each other."""
    found: list[tuple[str, str, Role]] = []
    calls: list[Span] = []
    tools: list[ToolTime[str]] = []
    waiting = [("", root) for root in reversed(roots)]
    while waiting:
        parent_id, span = waiting.pop()
        span_id, role = span.span_id, role_of(span)
        found.append((span_id, parent_id, role))
        if role >= Role.CALL:
            calls.append(span)
        elif role == Role.STEP and (tool := tool_of(span)) is not None:
            tools.append(tool)
        if span.children:
            waiting += [(span_id, child) for child in reversed(span.children)]
    return Nesting(found, lambda: map(time_of, calls), tools)


def time_of(call: Span) -> CallTime[str]:
    """When a call of a model was."""
    named = (call.attributes.get(name) for name in (a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL))
    models = frozenset(str(model) for model in named if model)
    return CallTime(call.span_id, call.started_ns, call.ended_ns, models, _process_of(call))


def tool_of(span: Span) -> ToolTime[str] | None:
    """When a tool ran, if this is the span of one."""
    if span.attributes.get(a.GEN_AI_OPERATION_NAME) != GenAiOperationName.EXECUTE_TOOL:
        return None
    name, sources = str(span.attributes.get(a.GEN_AI_TOOL_NAME, "")), sources_in(span.attributes)
    return ToolTime(span.span_id, name, span.started_ns, span.ended_ns, sources, _process_of(span))


def _process_of(span: Span) -> str | None:
    return str(span.resource.get(a.PLAYHEAD_INSTANCE, "")) or None


def number_steps(roots: Sequence[Span], nesting: Nesting[str] | None = None) -> list[Step]:
    """The steps of a forest of spans, numbered in order of their start.

    `playhead_genai.steps` says which spans are steps. A request inside a step is an attempt.
    """
    steps: list[Step] = []
    _add_steps(steps, roots, nesting or nesting_of(roots))
    steps.sort(key=lambda step: (step.span.started_ns, step.span.seq, step.span.span_id))
    for number, step in enumerate(steps, 1):
        step.number = number
    return steps


def _add_steps(steps: list[Step], roots: Sequence[Span], nesting: Nesting[str]) -> None:
    """Append the steps in a forest of spans, depth first, each with its attempts."""
    waiting: list[tuple[Span | None, Step | None, int]] = [(root, None, 0) for root in reversed(roots)]
    while waiting:
        span, enclosing, first = waiting.pop()
        if span is None:  # everything inside a span that encloses a call was visited
            if enclosing is not None and first < len(steps):
                steps[first].attempts[:0] = enclosing.attempts
            continue
        told = nesting.role(span.span_id) >= Role.STEP
        if nesting.is_step(span.span_id):
            enclosing = Step(0, span)
            if is_request(span):  # a plain request, or one that its bytes show to be a model call
                enclosing.attempts.append(span)
            steps.append(enclosing)
        elif told and nesting.encloses_call(span.span_id):
            enclosing = Step(0, span)  # what it asks itself belongs to the call inside it
            waiting.append((None, enclosing, len(steps)))
        elif enclosing is not None and not told and _is_attempt(span):
            enclosing.attempts.append(span)
        if span.children:
            waiting += [(child, enclosing, 0) for child in reversed(span.children)]


def _is_attempt(span: Span) -> bool:
    """Whether it is a request, or the span that the SDK of MCP puts around one."""
    return is_request(span) or a.MCP_METHOD_NAME in span.attributes
