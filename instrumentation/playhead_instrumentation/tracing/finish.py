"""The attributes and status that the span of a logical call gets at its end.

Status, by what happened:

=====================================================  ======  =====================================
the caller got                                         status  ``error.type``
=====================================================  ======  =====================================
an exception, and the provider said why                ERROR   the provider's code or type, or status
an exception otherwise (timeout, cancelled, …)         ERROR   name of the exception
a stream in which the provider reported an error       ERROR   the provider's code or type
a stream that broke (or whose reader was cancelled)    ERROR   name of the exception
an answer that ends too early though HTTP was whole    ERROR   ``truncated_response``
an answer that cannot be read                          ERROR   ``malformed_response``
a stream that it did not read to its end               unset   none; ``playhead.end.how`` = abandoned
=====================================================  ======  =====================================

An answer with complete content counts as complete, even if the SDK did not read the last byte. So does a
stream that was left when the model had said why it ended: some clients read no further.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opentelemetry.trace import StatusCode

from playhead_core.facts import ErrorRecord
from playhead_core.tape.protocols import Sink
from playhead_genai.messages import FinishReason
from playhead_genai.providers import CONTENT_ATTRIBUTES, MALFORMED, Derived, PrefixCache, derive
from playhead_instrumentation.tracing.attempts import Attempt
from playhead_instrumentation.tracing.calls import LogicalCall
from playhead_instrumentation.tracing.derived import asked_whom, ended_how, response_of, wire_of
from playhead_instrumentation.tracing.light import note
from playhead_instrumentation.tracing.processor import end_span
from playhead_instrumentation.tracing.span_budget import SpanOnTape, fit
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

TRUNCATED = "truncated_response"


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call went: type and text of its error; an empty type: no error."""

    error_type: str = ""
    message: str = ""


class Finisher:
    """Ends the spans of calls that are over. Runs in the worker."""

    def __init__(
        self,
        sink: Callable[[], Sink | None],
        budget_bytes: int,
        *,
        content: bool = True,
        scrub: Callable[[str], str] = lambda text: text,
        told: Callable[[bytes, dict[str, Any], int], None] | None = None,
    ) -> None:
        """``content``: whether messages go on spans. ``scrub`` removes secrets from an error's text.

        ``told``: told of each call: trace id, attributes of its span, and its start in ns.
        """
        self._sink = sink
        self._budget_bytes = budget_bytes
        self._content = content
        self._scrub = scrub
        self._told = told
        self._cache = PrefixCache()

    def __call__(self, call: LogicalCall) -> None:
        """Set the attributes derived from the call's last attempt, and end its span."""
        span = call.span
        if not span.is_recording():
            return
        attempt = call.attempts[-1] if call.attempts else None
        attributes: dict[str, Any] = {}
        derived: Derived | None = None
        wire = call.wire or (wire_of(attempt) if attempt is not None else "")
        if attempt is not None and wire:
            answer = response_of(attempt)
            derived = derive(wire, attempt.request_body, answer, self._cache, attempt.url)
            attributes.update(derived.attributes)
            if not call.wire:
                attributes.update(asked_whom(attempt))
            if derived.streamed and attempt.first_chunk_ns is not None:
                waited_ns = attempt.first_chunk_ns - call.started_ns
                attributes[a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] = max(0, waited_ns) / 1e9
            known: dict[str, Any] = {**(getattr(span, "attributes", None) or {}), **attributes}
            if derived.provider and a.GEN_AI_PROVIDER_NAME not in known:
                attributes[a.GEN_AI_PROVIDER_NAME] = derived.provider
            if derived.request_model and call.unnamed:
                attributes[a.GEN_AI_REQUEST_MODEL] = derived.request_model
                span.update_name(f"{derived.operation} {derived.request_model}")
            if not self._content:
                for name in CONTENT_ATTRIBUTES:
                    attributes.pop(name, None)
            if ended_how(attempt) == "abandoned" and not _said_whole(derived):
                attributes[a.PLAYHEAD_END_HOW] = "abandoned"
        outcome = outcome_of(call, attempt, derived)
        if outcome.error_type:
            attributes[a.ERROR_TYPE] = outcome.error_type
        context = span.get_span_context()
        reference = ""
        if attempt is not None and attempt.last_seq >= 0:
            reference = f"{attempt.instance.hex()}/{attempt.exchange}"
        on_tape = SpanOnTape(
            context.trace_id.to_bytes(16, "big"),
            context.span_id.to_bytes(8, "big"),
            attempt.exchange.lane if attempt is not None else 0,
            reference,
        )
        longest = _longest(span)
        attributes = fit(attributes, self._budget_bytes, self._sink(), span=on_tape, longest=longest)
        if attempt is not None and reference:
            if wire:
                attributes[a.PLAYHEAD_WIRE] = wire
            attributes[a.PLAYHEAD_EXCHANGE_REF] = reference
            if attempt.fidelity:
                attributes[a.PLAYHEAD_FIDELITY] = attempt.fidelity
            attributes[a.PLAYHEAD_RESTS_ON] = attempt.last_seq
            derivable = [name for name in CONTENT_ATTRIBUTES if name in attributes]
            if derivable:
                attributes[a.PLAYHEAD_DERIVED] = derivable
        note(span, attributes)
        if self._told is not None:
            self._told(on_tape.trace_id, attributes, call.started_ns)
        if outcome.error_type:
            span.set_status(StatusCode.ERROR, self._scrub(outcome.message) or None)
        end_span(span, call.ended_ns)


def outcome_of(call: LogicalCall, attempt: Attempt | None, derived: Derived | None) -> CallOutcome:
    """Return how the call went for its caller."""
    said = (
        CallOutcome(derived.error_type, derived.error_message) if derived is not None else CallOutcome()
    )
    if call.failure is not None:
        kind = said.error_type or call.failure.kind
        return CallOutcome(kind, said.message or call.failure.message)
    if attempt is None or derived is None or said.error_type:
        return said
    if derived.malformed:
        return CallOutcome(MALFORMED, derived.problem)
    if derived.content_complete:
        return CallOutcome()
    end = attempt.end
    if end is not None and end.how == "error":
        error = end.error or ErrorRecord("", "_OTHER", "")
        return CallOutcome(error.error_type, error.message)
    if ended_how(attempt) == "complete":
        return CallOutcome(TRUNCATED, derived.problem)
    return CallOutcome()


def _said_whole(derived: Derived) -> bool:
    """Whether the model had said all, and why it ended."""
    if derived.content_complete or derived.operation == GenAiOperationName.FETCH_RESPONSE:
        return derived.content_complete  # of what is fetched there may be more than one answer
    reasons = derived.attributes.get(a.GEN_AI_RESPONSE_FINISH_REASONS)
    return isinstance(reasons, list) and FinishReason.ERROR not in reasons


def _longest(span: Any) -> int | None:
    """Return how many characters of an attribute the SDK keeps; None: all."""
    limits = getattr(span, "_limits", None)
    longest = getattr(limits, "max_span_attribute_length", None)
    return longest if isinstance(longest, int) else None
