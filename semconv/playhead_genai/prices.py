"""Costs of calls at the prices of `genai-prices`: by provider, model, kind of token and date.

As in the GenAI conventions, input tokens include cached tokens and output tokens include reasoning
tokens; each kind is charged at its own price. What a file corrects (`correct`) goes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from playhead_core.untrusted.spans import count_in
from playhead_genai.price_corrections import Correction, correction_for
from playhead_semconv import attributes as a

KINDS = {
    "input_tokens": a.GEN_AI_USAGE_INPUT_TOKENS,
    "output_tokens": a.GEN_AI_USAGE_OUTPUT_TOKENS,
    "cache_read_tokens": a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "cache_write_tokens": a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS,
    "input_audio_tokens": a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS,
    "output_audio_tokens": a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS,
}


PRICED_AS = {
    "gcp.gen_ai": "google",
    "x_ai": "x-ai",
    "fireworks_ai": "fireworks",
}
"""Provider in the conventions' words → in those of the prices, where these do not recognise it."""

AUDIO = (a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS, a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS)
DAY_NS = 86_400 * 1_000_000_000

FREE = ":free"
"""Suffix of models that a gateway offers for free."""


class Tokens(NamedTuple):
    """Tokens of a call by kind, without audio."""

    input: int = 0
    """Includes ``cached`` and ``cache_write``."""
    cached: int = 0
    cache_write: int = 0
    output: int = 0


PROBES = (Tokens(1_000), Tokens(1_000, 1_000), Tokens(1_000, 0, 1_000), Tokens(0, 0, 0, 1_000))
"""Counts to probe the price of a thousand tokens of each kind: fresh, cached, cache write, output."""
LARGEST = (
    Tokens(100_000_000, 20_000_000, 10_000_000, 20_000_000),
    Tokens(100_000, 20_000, 10_000, 20_000),
)
"""Counts to which a price is proportional: the first for which it is. Some models cost more for long
inputs, none for shorter ones than the second."""

_corrections: tuple[Correction, ...] = ()


def correct(corrections: Sequence[Correction]) -> None:
    """From now on these go before the prices of the library, in the whole process."""
    global _corrections
    _corrections = tuple(corrections)
    _rates.cache_clear()


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of several calls."""

    usd: Decimal = Decimal(0)
    unpriced: tuple[str, ...] = ()
    """Models that used tokens and have no known price; the sum is without them. Empty: no model."""

    @property
    def known_usd(self) -> float | None:
        """None if nothing of it has a known price."""
        return float(self.usd) if self.usd or not self.unpriced else None

    def __str__(self) -> str:
        """``$0.09``; ``$0.09+`` if some prices are unknown; empty if all are."""
        if self.unpriced and not self.usd:
            return ""
        return dollars(self.usd) + ("+" if self.unpriced else "")


_TWO_DIGITS = Context(prec=2, rounding=ROUND_HALF_UP)


def dollars(usd: Decimal | float) -> str:
    """``$1,204.50``; below a cent with two significant digits, ``$0.0021``. Halves are rounded up."""
    exact = Decimal(str(usd))
    places = 1 - _TWO_DIGITS.plus(exact).adjusted() if 0 < exact < Decimal("0.01") else 2
    return f"${exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,f}"


def cost_of(calls: Iterable[tuple[Mapping[str, Any], int]]) -> Cost:
    """The cost of calls, each given as span attributes and start time in ns since the epoch."""
    total, unpriced = Decimal(0), dict[str, None]()
    for attributes, began_ns in calls:
        tokens = Tokens(*[count_in(attributes, name) for name in _COUNTS])
        if any(name in attributes and count_in(attributes, name) for name in AUDIO):
            price = price_of(attributes, began_ns)
        elif any(tokens):
            model, asked_model, provider = (str(attributes.get(name) or "") for name in _NAMES)
            price = price_of_tokens(model, asked_model, provider, tokens, began_ns)
        else:
            continue
        if price is None:
            unpriced[next(iter(_models(attributes)), "")] = None
        else:
            total += price
    return Cost(total, tuple(unpriced))


def price_of_tokens(
    model: str, asked_model: str, provider: str, tokens: Tokens, began_ns: int
) -> Decimal | None:
    """Return what `price_of` returns for a call without audio, a hundred times as fast.

    If the price of a model is proportional to the tokens, it is looked up once a day, not for each call.
    ``asked_model``: the model of the request, if the response names another.
    """
    found = _rates(model, asked_model, provider, began_ns // DAY_NS)
    if found is None:
        return None
    rates, largest = found
    if (
        tokens.input <= largest.input
        and tokens.output <= largest.output
        and tokens.cached + tokens.cache_write <= tokens.input
    ):
        return _in_proportion(rates, tokens)
    return _exact_price(model, asked_model, provider, tokens, began_ns)


def price_of(attributes: Mapping[str, Any], began_ns: int) -> Decimal | None:
    """Cost of one call in US dollars; None if its model has no known price."""
    counts = {kind: used for kind, name in KINDS.items() if (used := count_in(attributes, name))}
    cached = counts.get("cache_read_tokens", 0) + counts.get("cache_write_tokens", 0)
    if counts.get("input_tokens", 0) < cached:  # this provider counts cached tokens separately
        counts["input_tokens"] = counts.get("input_tokens", 0) + cached
    provider = str(attributes.get(a.GEN_AI_PROVIDER_NAME, ""))
    for model in _spellings(_models(attributes)) if _corrections else ():
        if (own := correction_for(_corrections, model, provider, began_ns)) is not None:
            return own.price(counts)
    from genai_prices import Usage, calc_price  # slow: reads its tables on import

    for model in _spellings(_models(attributes)):
        for where in (PRICED_AS.get(provider, provider), None):
            try:
                found = calc_price(
                    Usage(**counts),
                    model,
                    provider_id=where,
                    genai_request_timestamp=datetime.fromtimestamp(began_ns / 1e9, UTC),
                )
            except (LookupError, ValueError):
                continue
            return found.total_price
    return None


_NAMES = (a.GEN_AI_RESPONSE_MODEL, a.GEN_AI_REQUEST_MODEL, a.GEN_AI_PROVIDER_NAME)
_COUNTS = (
    a.GEN_AI_USAGE_INPUT_TOKENS,
    a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS,
    a.GEN_AI_USAGE_OUTPUT_TOKENS,
)
"""Attributes of the fields of `Tokens`, in their order."""


def _in_proportion(rates: tuple[Decimal, ...], tokens: Tokens) -> Decimal:
    fresh, cached, written, put_out = rates
    return (
        fresh * (tokens.input - tokens.cached - tokens.cache_write)
        + cached * tokens.cached
        + written * tokens.cache_write
        + put_out * tokens.output
    ) / 1_000


@lru_cache(maxsize=4096)
def _rates(
    model: str, asked_model: str, provider: str, day: int
) -> tuple[tuple[Decimal, ...], Tokens] | None:
    """Prices of a thousand tokens of each kind, and the largest counts for which they hold.

    No counts if they hold for none. None if the model has no known price.
    """
    begins = (day * DAY_NS, day * DAY_NS + DAY_NS // 2)
    found = [
        [_exact_price(model, asked_model, provider, probe, begin) for probe in PROBES]
        for begin in begins
    ]
    if all(price is None for prices in found for price in prices):
        return None
    rates = tuple(price for price in found[0] if price is not None)
    if len(rates) == len(PROBES) and found[0] == found[1]:
        for largest in LARGEST:
            whole = _exact_price(model, asked_model, provider, largest, begins[0])
            if whole == _in_proportion(rates, largest):
                return rates, largest
    return (), Tokens(-1)


def _exact_price(
    model: str, asked_model: str, provider: str, tokens: Tokens, began_ns: int
) -> Decimal | None:
    names = zip(_NAMES, (model, asked_model, provider), strict=True)
    return price_of({**dict(names), **dict(zip(_COUNTS, tokens, strict=True))}, began_ns)


def _models(attributes: Mapping[str, Any]) -> list[str]:
    names = (a.GEN_AI_RESPONSE_MODEL, a.GEN_AI_REQUEST_MODEL)
    return [str(attributes[name]) for name in names if attributes.get(name)]


def _spellings(models: Iterable[str]) -> Iterator[str]:
    """Each model name as it is, and without prefixes of gateways: ``openai/``, ``…/models/``."""
    for model in models:
        yield model
        bare = model.rpartition("/")[2]
        if bare != model and not bare.endswith(FREE):
            yield bare
