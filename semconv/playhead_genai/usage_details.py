"""Counts of tokens as Langfuse's SDKs write them: one JSON object of freely named counts.

Langfuse's own counts exclude each other: ``input`` does not include ``input_cached_tokens``. Objects in
the form of OpenAI's include them, and so does an object whose total is that of input and output alone.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from playhead_core.untrusted.spans import count_in
from playhead_semconv import attributes as a

USAGE_DETAILS: Final = "langfuse.observation.usage_details"

_INPUT = ("input", "input_tokens", "prompt_tokens", "inputTokens", "promptTokens")
_OUTPUT = ("output", "output_tokens", "completion_tokens", "outputTokens", "completionTokens")
_TOTAL = ("total", "total_tokens", "totalTokens")


def counts_of(text: str) -> dict[str, int]:
    """Return the counts in ``text`` by their names in the GenAI conventions; empty: it has none."""
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    said = cast(dict[str, Any], found)
    details = [
        (name, cast(dict[str, Any], value))
        for name, value in said.items()
        if isinstance(value, dict) and name.lower().endswith("details")
    ]
    flat = {name: count_in(said, name) for name in said if name not in _TOTAL}
    for group, value in details:
        flat |= {f"{group}.{name}": count_in(value, name) for name in value}
    sent, received, total = (_first(said, names) for names in (_INPUT, _OUTPUT, _TOTAL))
    if not (details or (total and total == sent + received)):
        sent = _sum(flat, "input", "prompt", "cache")
        received = _sum(flat, "output", "completion", "reasoning")
    written = _sum(flat, "cache_creation", "cache_write", "cachecreation", "cachewrite")
    counts = {
        a.GEN_AI_USAGE_INPUT_TOKENS: sent,
        a.GEN_AI_USAGE_OUTPUT_TOKENS: received,
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: _sum(flat, "cache") - written,
        a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: written,
        a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: _sum(flat, "reasoning"),
    }
    return {name: count for name, count in counts.items() if count}


def _first(counts: dict[str, Any], names: tuple[str, ...]) -> int:
    return next((count for name in names if (count := count_in(counts, name))), 0)


def _sum(counts: dict[str, int], *words: str) -> int:
    return sum(count for name, count in counts.items() if any(word in name.lower() for word in words))
