"""Tokens that the calls of a run used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from playhead_core.untrusted.spans import count_in
from playhead_genai.steps import CALLS, Nesting, counted_key_in
from playhead_replay.run.spans import Span, walked
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
    found = [span.attributes for span in calls]
    return TokenUsage(*[sum([count_in(at, name) for at in found if name in at]) for name in COUNTS])


def token_bearers(roots: Sequence[Span], nesting: Nesting[str] | None = None) -> list[Span]:
    """The spans of a run whose tokens count, depth first: each token once."""
    used = [span for span in walked(roots) if used_tokens(span)]
    bearing = (nesting or nesting_of(roots)).bearers({span.span_id for span in used})
    bearers = [span for span in used if span.span_id in bearing]
    keys = {span.span_id: key for span in bearers if (key := counted_key_in(span.attributes))}
    if not keys:
        return bearers
    fetched: dict[str, str] = {}
    for span in sorted(bearers, key=lambda span: (not _is_call(span), span.started_ns)):
        if key := keys.get(span.span_id):
            fetched.setdefault(key, span.span_id)
    return [
        span
        for span in bearers
        if _is_call(span) or fetched.get(keys.get(span.span_id, ""), span.span_id) == span.span_id
    ]


def _is_call(span: Span) -> bool:
    return span.operation in CALLS


def was_played(span: Span) -> bool:
    """Whether a tape answered the call of a span, so that its tokens were not used again."""
    return a.PLAYHEAD_FIDELITY in span.attributes


def used_tokens(span: Span) -> bool:
    """Whether a span says that it used tokens."""
    at = span.attributes
    sent, received = at.get(a.GEN_AI_USAGE_INPUT_TOKENS), at.get(a.GEN_AI_USAGE_OUTPUT_TOKENS)
    return (type(sent) is int and sent > 0) or (type(received) is int and received > 0)
