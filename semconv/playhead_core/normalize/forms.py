"""Forms of volatile values: what a random value or an instant looks like as text.

A form has a name; a tape keeps only the name:

| name | is |
|---|---|
| ``uuid:4``, ``UUID:4`` | a UUID of that version, in lower or upper case; ``uuid:-`` of no version |
| ``hex:12``, ``HEX:8-4`` | that many hex digits, in groups; ``hex:32:4`` a UUID without dashes |
| ``base64:22``, ``base64:22:2`` | that many characters of base64 or base64url, and that many ``=`` |
| ``decimal:39`` | an integer of about that many digits |
| ``fraction``, ``float`` | a number in [0, 1), any other; at least eight significant digits |
| ``text:8`` | that many letters, digits, ``_`` and ``-`` |
| ``ulid``, ``objectid`` | as their formats define them |
| ``time:dddd-dd-dd`` | an instant of that layout (`instants`) |
| ``epoch:s``, ``:ms``, ``:us``, ``:ns`` | integers; ``epoch:s.f``, ``epoch:ms.f`` floats |
| ``count:s``, ``count:ns`` | readings of a clock with an arbitrary zero |
| ``duration:s``, ``duration:ms`` | floats |

Lengths are exact, except for numbers. A random value has at least eight characters, an integer at least
six digits, so that nothing matches by chance. A name that fits none of these is not a form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from playhead_core.normalize.instants import SECOND_NS, Stretch, instant_at, layout_fits

SHORTEST: Final = 8
"""Characters of the shortest random value."""

SHORTEST_NUMBER: Final = 6
"""Digits of the shortest random integer."""

LONGEST: Final = 8192
"""Characters of the longest volatile value."""

DIGITS_APART: Final = 6
"""Digits by which two random integers of one origin differ in length at most.

One in a million differs by more.
"""

_GREGORIAN_NS: Final = 12_219_292_800 * SECOND_NS
"""Nanoseconds from the zero of time-based UUIDs, in 1582, to the epoch."""

NUMBER: Final = re.compile(
    r"(?<![0-9A-Za-z.])\d{1,64}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?"
    r"(?:(?![0-9A-Za-z_]|\.\d)|(?=(?:s|ms|us|ns|sec|seconds)(?![0-9A-Za-z_])))",
    re.ASCII,
)
"""A number in a text, without its sign. A unit may follow."""

_FLOAT = re.compile(r"\d{1,16}\.\d{1,20}(?:[eE][-+]?\d{1,3})?|\d{1,17}[eE]-\d{1,3}", re.ASCII)
_NAME = re.compile(r"([A-Za-z0-9]{3,8})(?::([0-9a-z.-]{1,64}))?(?::(\d))?", re.ASCII)
_CROCKFORD: Final = {sign: number for number, sign in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}

_EPOCH_NS: Final = {
    "s": SECOND_NS,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
    "s.f": SECOND_NS,
    "ms.f": 1_000_000,
}
_EPOCH_DIGITS: Final = {10: "s", 13: "ms", 16: "us", 19: "ns"}


@dataclass(frozen=True, slots=True)
class Form:
    """One form. Made by `form_of`."""

    name: str
    pattern: re.Pattern[str]
    layout: str | None = None
    """Layout of an instant; None for other forms."""

    @property
    def kind(self) -> str:
        """The first word of the name, in lower case."""
        return self.name.partition(":")[0].lower()

    @property
    def paired(self) -> bool:
        """Whether its values are one to one.

        Instants and durations are not: a real clock may give the same reading twice where a virtual one
        does not, and vice versa.
        """
        return self.kind not in ("time", "epoch", "duration", "count")

    @property
    def is_number(self) -> bool:
        """Whether its values appear as JSON numbers, or among digits of a text."""
        return self.kind in ("decimal", "fraction", "float", "epoch", "count", "duration")

    def end(self, text: str, at: int) -> int | None:
        """Return where a value of this form ends that starts at ``at``; None if none does."""
        if self.layout is not None:
            instant = instant_at(text, at)
            return instant.end if instant is not None and instant.layout == self.layout else None
        if self.is_number:
            found = NUMBER.match(text, at, at + 64)
            whole = found is not None and self.pattern.fullmatch(found[0])
            return found.end() if found is not None and whole and _fits(self, found[0]) else None
        found = self.pattern.match(text, at)
        return None if found is None else found.end()

    def fits(self, text: str) -> bool:
        """Whether the whole text is a value of this form."""
        return self.end(text, 0) == len(text)

    def stretch(self, text: str) -> Stretch | None:
        """Return the time that a value of this form contains, since the epoch; None if it has none.

        Not for ``time:`` forms, which have several readings.
        """
        return _stretch(self, text)

    def key(self, text: str) -> str:
        """Return a key that is the same for every spelling of the same value."""
        if self.kind in ("uuid", "hex", "objectid"):
            return "x" + text.replace("-", "").lower()
        return text


@lru_cache(4096)
def form_of(name: str) -> Form | None:
    """Return the form with that name; None if there is none. Safe for any text.

    >>> form_of("hex:8").fits("1f3a9b2c"), form_of("hex:8").fits("order 17")
    (True, False)
    """
    if name.startswith("time:"):
        layout = name[5:]
        return Form(name, re.compile(""), layout) if layout_fits(layout) else None
    found = _NAME.fullmatch(name)
    pattern = None if found is None else _pattern(*found.groups())
    return None if pattern is None else Form(name, re.compile(pattern, re.ASCII))


def hex_form(text: str, version: str = "-") -> str | None:
    """Return the name of the form of hex digits in groups; None if upper and lower case are mixed.

    ``version``: of a complete UUID, where it is known. Arbitrary digits look like a UUID now and then.

    >>> hex_form("1f3a9b2c-77aa"), hex_form("0D6F0A1E-5B1C-4C63-9A53-0F3F6B7F3C11", "4")
    ('hex:8-4', 'UUID:4')
    """
    upper = text != text.lower()
    if upper and text != text.upper():
        return None
    groups = "-".join(str(len(group)) for group in text.split("-"))
    if groups == "8-4-4-4-12":
        return f"{'UUID' if upper else 'uuid'}:{version}"
    name = f"{'HEX' if upper else 'hex'}:{groups}"
    return name if version == "-" or groups != "32" else f"{name}:{version}"


def epoch_form(number: str) -> str | None:
    """Return the name of the form of an epoch number; None if its length does not match.

    >>> epoch_form("1795000000"), epoch_form("1795000000.25"), epoch_form("17")
    ('epoch:s', 'epoch:s.f', None)
    """
    whole, _, part = number.partition(".")
    unit = _EPOCH_DIGITS.get(len(whole))
    if unit is None or not whole.isdigit() or "e" in part:
        return None
    if not part:
        return f"epoch:{unit}"
    return f"epoch:{unit}.f" if unit in ("s", "ms") else None


def significant(number: str) -> int:
    """Return the number of significant digits in which a number is written."""
    digits = number.lower().partition("e")[0].replace(".", "").lstrip("0")
    return len(digits)


def decimals(number: str) -> int:
    """Return the number of digits after the decimal point to which a float is exact.

    >>> decimals("0.25"), decimals("1e-06"), decimals("9.99e-07"), decimals("17")
    (2, 6, 9, 0)
    """
    mantissa, _, power = number.lower().partition("e")
    return max(0, len(mantissa.partition(".")[2]) - int(power or 0))


def _fits(form: Form, number: str) -> bool:
    """Check what the pattern of a number cannot express."""
    kind = form.kind
    if kind == "fraction":
        return significant(number) >= 8 and float(number) < 1
    if kind == "float":
        return significant(number) >= 8
    return form.name != "count:s" or decimals(number) >= 6


def _pattern(kind: str, of: str | None, more: str | None) -> str | None:
    if of is None:
        return _FLOAT.pattern if kind in ("fraction", "float") else _FIXED.get(kind)
    if kind in ("hex", "HEX", "uuid", "UUID"):
        return _hex_pattern(kind, of, more)
    if kind in ("epoch", "count", "duration"):
        return _NUMBERS.get(f"{kind}:{of}") if more is None else None
    if not of.isdigit() or len(of) > 4:
        return None
    length = int(of)
    if kind == "decimal" and more is None and SHORTEST_NUMBER <= length <= 64:
        return rf"\d{{{max(SHORTEST_NUMBER, length - DIGITS_APART)},{length + DIGITS_APART}}}"
    if not SHORTEST <= length <= LONGEST:
        return None
    if kind == "base64":
        pad = int(more or 0)
        one = f"(?:[A-Za-z0-9+/]{{{length}}}|[A-Za-z0-9_-]{{{length}}})"
        return f"{one}={{{pad}}}" if pad <= 2 else None
    if kind == "text" and more is None:
        return f"[A-Za-z0-9_-]{{{length}}}"
    return None


def _hex_pattern(kind: str, of: str, more: str | None) -> str | None:
    digit = "[0-9a-f]" if kind.islower() else "[0-9A-F]"
    if kind in ("uuid", "UUID"):
        if more is not None or len(of) != 1 or of not in "12345678-":
            return None
        version = digit if of == "-" else of
        variant = digit if of == "-" else "[89ab]" if kind.islower() else "[89AB]"
        return f"{digit}{{8}}-{digit}{{4}}-{version}{digit}{{3}}-{variant}{digit}{{3}}-{digit}{{12}}"
    groups = of.split("-")
    if len(groups) > 8 or not all(group.isdigit() and len(group) <= 4 for group in groups):
        return None
    if not SHORTEST <= sum(map(int, groups)) <= LONGEST:
        return None
    if more is None:
        return "-".join(f"{digit}{{{int(group)}}}" for group in groups)
    variant = "[89ab]" if kind.islower() else "[89AB]"
    return f"{digit}{{12}}{more}{digit}{{3}}{variant}{digit}{{15}}" if of == "32" else None


_FIXED: Final = {
    "ulid": "[0-7][0-9A-HJKMNP-TV-Z]{25}",
    "objectid": "[0-9a-f]{24}",
}
_NUMBERS: Final = {
    "epoch:s": r"\d{10}",
    "epoch:ms": r"\d{13}",
    "epoch:us": r"\d{16}",
    "epoch:ns": r"\d{19}",
    "epoch:s.f": r"\d{10}\.\d{1,9}",
    "epoch:ms.f": r"\d{13}\.\d{1,9}",
    "count:s": r"\d{1,10}\.\d{1,12}",
    "count:ns": r"\d{10,18}",
    "duration:s": _FLOAT.pattern,
    "duration:ms": _FLOAT.pattern,
}


def _stretch(form: Form, text: str) -> Stretch | None:
    kind, of = form.kind, form.name.partition(":")[2]
    if kind == "epoch":
        return _epoch_stretch(text, of)
    if kind == "ulid":
        number = 0
        for sign in text[:10]:
            number = number * 32 + _CROCKFORD[sign]
        return number * 1_000_000, (number + 1) * 1_000_000
    digits = text.replace("-", "").lower()
    if kind == "objectid":
        second = int(digits[:8], 16)
        return second * SECOND_NS, (second + 1) * SECOND_NS
    version = of if kind == "uuid" else form.name.partition(":32:")[2] if kind == "hex" else ""
    if version == "7":
        number = int(digits[:12], 16)
        return number * 1_000_000, (number + 1) * 1_000_000
    if version in ("1", "6"):
        low = (
            digits[13:16] + digits[8:12] + digits[:8] if version == "1" else digits[:12] + digits[13:16]
        )
        first = int(low, 16) * 100 - _GREGORIAN_NS
        return first, first + 100
    return None


def _epoch_stretch(text: str, unit: str) -> Stretch:
    size = _EPOCH_NS[unit]
    whole, _, part = text.partition(".")
    first = int(whole) * size
    if not part:
        # The number was rounded or truncated: allow half a unit before, and a whole one after.
        return first - size // 2, first + size
    first += int(part) * size // 10 ** len(part)
    # A float of that magnitude is exact to a quarter of a microsecond.
    around = max(size // 10 ** len(part), 1_000)
    return first - around, first + around
