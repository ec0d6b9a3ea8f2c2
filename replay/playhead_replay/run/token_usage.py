"""Tokens that the calls of a run used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from playhead_core.untrusted.spans import count_in
from playhead_genai.steps import CALLS, counted_key_in
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import nesting_of
from playhead_semconv import attributes as a


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of a run: the sum over its calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


COUNTS = (
    a.GEN_AI_USAGE_INPUT_TOKENS,
    a.GEN_AI_USAGE_OUTPUT_TOKENS,
    a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
)
"""Attributes that `TokenUsage` sums, in the order of its fields."""


def sum_of(calls: Iterable[Span]) -> TokenUsage:
    """The tokens of some calls."""
    totals = [0, 0, 0, 0]
    for span in calls:
        for index, name in enumerate(COUNTS):
            totals[index] += count_in(span.attributes, name)
    return TokenUsage(*totals)


def token_bearers(roots: Sequence[Span]) -> list[Span]:
    """The spans of a run whose tokens count, depth first: each token once."""
    spans = [span for root in roots for span in root.walk()]
    bearing = nesting_of(roots).bearers({span.span_id for span in spans if used_tokens(span)})
    fetched: dict[str, str] = {}
    for span in sorted(spans, key=lambda span: (not _is_call(span), span.started_ns)):
        if span.span_id in bearing and (key := counted_key_in(span.attributes)):
            fetched.setdefault(key, span.span_id)
    return [
        span
        for span in spans
        if span.span_id in bearing
        and (
            _is_call(span) or fetched.get(counted_key_in(span.attributes), span.span_id) == span.span_id
        )
    ]


def _is_call(span: Span) -> bool:
    return span.operation in CALLS


def was_played(span: Span) -> bool:
    """Whether a tape answered the call of a span, so that its tokens were not used again."""
    return a.PLAYHEAD_FIDELITY in span.attributes


def used_tokens(span: Span) -> bool:
    """Whether a span says that it used tokens."""
    counts = (a.GEN_AI_USAGE_INPUT_TOKENS, a.GEN_AI_USAGE_OUTPUT_TOKENS)
    return any(count_in(span.attributes, name) for name in counts)
