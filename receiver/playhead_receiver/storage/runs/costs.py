"""Computes the cost of tokens quickly, by the prices of `playhead_genai.prices`.

If a model's price is proportional to the tokens, it is looked up once, not for every span.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from playhead_genai.prices import price_of
from playhead_receiver.storage.values.span_labels import Label, Usage
from playhead_semconv import attributes as a

NANO = 1_000_000_000
MOST = (1 << 62) - 1
"""The largest sum: two of them fit into a signed 64-bit integer."""
DAY_NS = 86_400 * NANO

PROBES = (Usage(1_000), Usage(1_000, 1_000), Usage(1_000, 0, 1_000), Usage(0, 0, 0, 1_000))
"""Usages to probe the price of a thousand tokens of each kind: fresh, cached, cache write, output."""
LARGEST = Usage(100_000, 20_000, 10_000, 20_000)
"""Largest usage for which a proportional price is assumed; beyond it some models cost more."""


def cost_of(calls: Iterable[tuple[Label, Usage, int]]) -> tuple[int | None, list[str]]:
    """The cost of calls in billionths of a dollar, and the models without a known price.

    ``calls``: label, usage and begin in ns of each. The cost is None if nothing was used, or no used
    model has a price.
    """
    total: Decimal | None = None
    unpriced: dict[str, None] = {}
    for label, usage, began_ns in calls:
        price = _price(label.model, label.asked_model, label.provider, usage, began_ns)
        if price is None:
            unpriced[label.model] = None
        else:
            total = price if total is None else total + price
    return (None if total is None else round(total * NANO)), list(unpriced)


def load_prices() -> None:
    """Load the prices now instead of at the first look-up."""
    _rates("gpt-4o", "", "openai", time.time_ns() // DAY_NS)


def _price(model: str, asked_model: str, provider: str, usage: Usage, began_ns: int) -> Decimal | None:
    rates = _rates(model, asked_model, provider, began_ns // DAY_NS)
    fits = (
        usage.input <= LARGEST.input
        and usage.output <= LARGEST.output
        and usage.cached + usage.cache_write <= usage.input
    )
    if rates is None or (rates and fits):
        return None if rates is None else _in_proportion(rates, usage)
    return _ask_price(model, asked_model, provider, usage, began_ns)


def _in_proportion(rates: tuple[Decimal, ...], usage: Usage) -> Decimal:
    fresh, cached, written, put_out = rates
    return (
        fresh * (usage.input - usage.cached - usage.cache_write)
        + cached * usage.cached
        + written * usage.cache_write
        + put_out * usage.output
    ) / 1_000


@lru_cache(maxsize=4096)
def _rates(model: str, asked_model: str, provider: str, day: int) -> tuple[Decimal, ...] | None:
    """Prices of a thousand tokens of each kind; empty if they are not proportional, None if unknown."""
    begins = (day * DAY_NS, day * DAY_NS + DAY_NS // 2)
    found = [
        [_ask_price(model, asked_model, provider, probe, begin) for probe in PROBES] for begin in begins
    ]
    if all(price is None for prices in found for price in prices):
        return None
    rates = tuple(price for price in found[0] if price is not None)
    if len(rates) < len(PROBES) or found[0] != found[1]:
        return ()
    whole = _ask_price(model, asked_model, provider, LARGEST, begins[0])
    return rates if whole == _in_proportion(rates, LARGEST) else ()


def _ask_price(
    model: str, asked_model: str, provider: str, usage: Usage, began_ns: int
) -> Decimal | None:
    said = {
        a.GEN_AI_RESPONSE_MODEL: model,
        a.GEN_AI_REQUEST_MODEL: asked_model,
        a.GEN_AI_PROVIDER_NAME: provider,
        a.GEN_AI_USAGE_INPUT_TOKENS: usage.input,
        a.GEN_AI_USAGE_OUTPUT_TOKENS: usage.output,
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: usage.cached,
        a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: usage.cache_write,
    }
    return price_of(said, began_ns)
