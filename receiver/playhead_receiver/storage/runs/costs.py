"""Sums up the costs of calls, by the prices of `playhead_genai.prices`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from decimal import Decimal

from playhead_genai.prices import Tokens, price_of_tokens
from playhead_receiver.storage.values.span_labels import Label, Usage

NANO = 1_000_000_000
MOST = (1 << 62) - 1
"""The largest sum: two of them fit into a signed 64-bit integer."""


def cost_of(calls: Iterable[tuple[Label, Usage, int]]) -> tuple[int | None, list[str]]:
    """The cost of calls in billionths of a dollar, and the models without a known price.

    ``calls``: label, usage and begin in ns of each. The cost is None if nothing was used, or no used
    model has a price.
    """
    total: Decimal | None = None
    unpriced: dict[str, None] = {}
    for label, usage, began_ns in calls:
        tokens = Tokens(usage.input, usage.cached, usage.cache_write, usage.output)
        price = price_of_tokens(label.model, label.asked_model, label.provider, tokens, began_ns)
        if price is None:
            unpriced[label.model] = None
        else:
            total = price if total is None else total + price
    return (None if total is None else round(total * NANO)), list(unpriced)


def load_prices() -> None:
    """Load the prices now instead of at the first look-up."""
    price_of_tokens("gpt-4o", "", "openai", Tokens(1), time.time_ns())
