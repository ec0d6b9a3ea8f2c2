"""Corrections of prices, as a file says them: they go before the prices of the library.

A table ``[[price]]`` for each: ``model`` (a pattern such as ``house-*``), and US dollars for a million
tokens as ``input``, ``output``, ``cache-read``, ``cache-write``, ``audio-input``, ``audio-output``;
where they hold for one provider only, ``provider``, in the words of the conventions; where from a day
on, ``since``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, Final, cast

import msgspec

from playhead_core.errors import ConfigurationError, nearest

MOST_BYTES = 1 << 20
"""Size of the largest file."""
MOST = 10_000
"""Most corrections."""
DEAREST = Decimal(1_000_000)
"""The highest price of a million tokens."""

PER_MILLION: Final = Decimal(1_000_000)
INCLUDED: Final = {
    "cache_read_tokens": ("cache-read", "input"),
    "cache_write_tokens": ("cache-write", "input"),
    "input_audio_tokens": ("audio-input", "input"),
    "output_audio_tokens": ("audio-output", "output"),
}
"""Tokens that are counted among others → their price, and whose price they have where it is not said."""
KINDS: Final = ("input", "output", *(name for name, _ in INCLUDED.values()))
WORDS: Final = ("model", "provider", "since", *KINDS)


class Correction(msgspec.Struct, frozen=True):
    """The prices of some models."""

    model: str
    """Pattern of their names."""
    dollars: Mapping[str, Decimal]
    """For a million tokens, by kind."""
    provider: str = ""
    """Empty: any."""
    since_ns: int = 0

    def fits(self, model: str, provider: str, began_ns: int) -> bool:
        """Whether it holds for a call."""
        return (
            self.since_ns <= began_ns
            and self.provider in ("", provider)
            and fnmatchcase(model, self.model)
        )

    def price(self, counts: Mapping[str, int]) -> Decimal:
        """Cost of a call in US dollars; ``counts``: by kind, as `KINDS` of `prices` names them.

        Tokens of a kind that has no price cost nothing.
        """
        left = {"input": counts.get("input_tokens", 0), "output": counts.get("output_tokens", 0)}
        total = Decimal(0)
        for kind, (own, whole) in INCLUDED.items():
            count = min(counts.get(kind, 0), left[whole])
            left[whole] -= count
            total += count * self.dollars.get(own, self.dollars.get(whole, Decimal(0)))
        total += sum(count * self.dollars.get(kind, Decimal(0)) for kind, count in left.items())
        return total / PER_MILLION


def correction_for(
    corrections: Sequence[Correction], model: str, provider: str, began_ns: int
) -> Correction | None:
    """The correction for a call: the latest that holds; of several of one day the last in the file."""
    fitting = [one for one in corrections if one.fits(model, provider, began_ns)]
    return max(enumerate(fitting), key=lambda one: (one[1].since_ns, one[0]))[1] if fitting else None


def read_corrections(file: BinaryIO, name: str) -> tuple[Correction, ...]:
    """The corrections in a file. `ConfigurationError`, with its ``name``, where it is not as above."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConfigurationError(f"{name} is larger than {MOST_BYTES >> 20} MiB")
    try:
        document = tomllib.loads(data.decode(), parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as problem:
        raise ConfigurationError(f"{name} is no TOML file", cause=str(problem)[:200]) from None
    unknown = next((word for word in document if word != "price"), None)
    found = document.get("price", [])
    if unknown is not None or not isinstance(found, list):
        raise ConfigurationError(f"{name} has more than tables [[price]]", hint=EXAMPLE)
    entries = cast(list[Any], found)
    if len(entries) > MOST:
        raise ConfigurationError(f"{name} has more than {MOST:,} prices")
    return tuple(_correction(entry, f"price {at} in {name}") for at, entry in enumerate(entries, 1))


EXAMPLE: Final = 'e.g. [[price]] model = "house-*" input = 2.5 output = 10'


def _correction(entry: Any, where: str) -> Correction:
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{where} is no table", hint=EXAMPLE)
    fields = cast(dict[str, Any], entry)
    for word in fields:
        if word not in WORDS:
            near = nearest(word, WORDS)
            hint = f"did you mean {near}?" if near else f"known: {', '.join(WORDS)}"
            raise ConfigurationError(f"{where} has an unknown word {word[:60]!r}", hint=hint)
    model, provider = fields.get("model"), fields.get("provider", "")
    if not isinstance(model, str) or not model or not isinstance(provider, str):
        raise ConfigurationError(f"{where} names no model, or its provider is no text", hint=EXAMPLE)
    dollars = {kind: _dollars(fields[kind], kind, where) for kind in KINDS if kind in fields}
    if not dollars:
        raise ConfigurationError(f"{where} says no price", hint=EXAMPLE)
    return Correction(model, dollars, provider, _since(fields.get("since"), where))


def _dollars(value: Any, kind: str, where: str) -> Decimal:
    right = isinstance(value, int | Decimal) and not isinstance(value, bool)
    price = Decimal(value) if right else Decimal("nan")
    if not price.is_finite() or not 0 <= price <= DEAREST:
        raise ConfigurationError(
            f"{kind} of {where} is not a number of US dollars from 0 to {DEAREST:,} for a million tokens"
        )
    return price


def _since(value: Any, where: str) -> int:
    if value is None:
        return 0
    if isinstance(value, date) and not isinstance(value, datetime):
        began = datetime(value.year, value.month, value.day, tzinfo=UTC)
        return int(began.timestamp()) * 1_000_000_000
    raise ConfigurationError(f"since of {where} is no day", hint="e.g. since = 2026-10-01")
