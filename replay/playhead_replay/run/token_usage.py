"""Tokens that the calls of a run used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step
from playhead_semconv import attributes as a
from playhead_semconv.untrusted.counts import count_in


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


def sum_of(calls: Iterable[Step]) -> TokenUsage:
    """The tokens of some calls."""
    totals = [0, 0, 0, 0]
    for step in calls:
        for index, name in enumerate(COUNTS):
            totals[index] += count_in(step.span.attributes, name)
    return TokenUsage(*totals)


def was_played(span: Span) -> bool:
    """Whether a tape answered the call of a span, so that its tokens were not used again."""
    return a.PLAYHEAD_FIDELITY in span.attributes


def used_tokens(span: Span) -> bool:
    """Whether a span says that it used tokens."""
    counts = (a.GEN_AI_USAGE_INPUT_TOKENS, a.GEN_AI_USAGE_OUTPUT_TOKENS)
    return any(count_in(span.attributes, name) for name in counts)


def used_inside(span: Span) -> bool:
    """Whether a span below this one says that it used tokens."""
    return any(used_tokens(one) for child in span.children for one in child.walk())
