"""Steps: what a reader of a run counts. Logical calls and tool executions, in order of start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from playhead_replay.run.spans import KIND_CLIENT, Span
from playhead_semconv import attributes as a
from playhead_semconv.untrusted.counts import count_in
from playhead_semconv.values import GenAiOperationName

FRAMES = (GenAiOperationName.INVOKE_AGENT, GenAiOperationName.INVOKE_WORKFLOW)
"""GenAI operations that enclose steps and are not steps themselves."""


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
    """Whether a span with these attributes is always a step: a call to a model, a tool."""
    operation = attributes.get(a.GEN_AI_OPERATION_NAME)
    return bool(operation) and operation not in FRAMES


CALLS = (
    GenAiOperationName.CHAT,
    GenAiOperationName.GENERATE_CONTENT,
    GenAiOperationName.TEXT_COMPLETION,
    GenAiOperationName.EMBEDDINGS,
)
"""GenAI operations that are calls of a model."""


def is_retold(span: Span) -> bool:
    """Whether inside of this call of a model one is called: a framework tells what a client does."""
    return _is_call(span) and any(_is_call(one) for child in span.children for one in child.walk())


def _is_call(span: Span) -> bool:
    return span.attributes.get(a.GEN_AI_OPERATION_NAME) in CALLS


def is_request(span: Span) -> bool:
    """Whether this is the span of an outgoing request: HTTP, WebSocket or gRPC."""
    asks = a.HTTP_REQUEST_METHOD in span.attributes or a.RPC_SYSTEM in span.attributes
    return span.kind == KIND_CLIENT and asks


def resend_count(attributes: dict[str, Any]) -> int:
    """How many times this request had been sent before."""
    return count_in(attributes, a.HTTP_REQUEST_RESEND_COUNT)


def number_steps(roots: Iterable[Span]) -> list[Step]:
    """The steps of a forest of spans, numbered in order of their start.

    A logical call is always a step, but for the call of a model that encloses another: a framework and
    the client below it tell of one call, and the client knows it best. An HTTP request is a step of its
    own only if no step encloses it; inside a step it is an attempt of that step.
    """
    steps: list[Step] = []
    for root in roots:
        steps.extend(_steps_in(root, None))
    steps.sort(key=lambda step: (step.span.started_ns, step.span.seq, step.span.span_id))
    for number, step in enumerate(steps, 1):
        step.number = number
    return steps


def _steps_in(span: Span, enclosing: Step | None) -> Iterator[Step]:
    if is_logical(span.attributes) and not is_retold(span):
        enclosing = Step(0, span)
        if is_request(span):  # its bytes told that it is a call
            enclosing.attempts.append(span)
        yield enclosing
    elif is_request(span):
        if enclosing is None:
            enclosing = Step(0, span)
            yield enclosing
        enclosing.attempts.append(span)
    elif enclosing is not None and a.MCP_METHOD_NAME in span.attributes:
        enclosing.attempts.append(span)  # the span that the SDK of MCP puts around a request
    for child in span.children:
        yield from _steps_in(child, enclosing)
