"""Pairs of a recorded value and the current one: one to one, written, parsed, and verified.

The request fact of a replay holds the pairs in which the request differs from the recorded one. With
both requests and the pairs, `verify` computes that they differ in nothing else.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from playhead_core.errors import CorruptTape
from playhead_core.normalize.comparison import (
    MOST_CHARS,
    MOST_PLACES,
    ComparedRequest,
    Counterpart,
    Pair,
    Unlike,
    compare,
)
from playhead_core.normalize.forms import LONGEST, NUMBER, Form, form_of
from playhead_core.normalize.heads import Heads

LOOKBACK: Final = 64
"""How many leading characters two values of one form may share."""

MOST_PAIRS: Final = 100_000

_SHOWN_CHARS: Final = 64

_MOST_WRITTEN: Final = 8
"""Spellings kept of one value: upper and lower case, dashes."""


def text_of(pairs: Iterable[Pair]) -> str:
    """Return pairs as a tape holds them: a JSON array of ``[recorded, now, form]``."""
    return json.dumps([list(pair) for pair in pairs], separators=(",", ":"))


def pairs_of(text: str) -> tuple[Pair, ...]:
    """The inverse of `text_of`. Raises `CorruptTape` if the text is not a list of valid pairs."""
    if len(text) > 8 * MOST_CHARS:
        raise CorruptTape(f"volatile values take {len(text)} characters", cause="no request has so many")
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CorruptTape("volatile values cannot be read", cause=str(problem)) from None
    if not isinstance(found, list) or len(cast("list[Any]", found)) > MOST_PLACES:
        raise CorruptTape("volatile values cannot be read", cause=f"not a list of up to {MOST_PLACES}")
    return tuple(_pair(one) for one in cast("list[Any]", found))


def _pair(one: Any) -> Pair:
    parts = cast("list[Any]", one) if isinstance(one, list) else []
    if len(parts) != 3 or not all(isinstance(part, str) and 0 < len(part) <= LONGEST for part in parts):
        raise CorruptTape("a volatile value cannot be read", cause="not recorded, now and form")
    pair = Pair(*parts)
    form = form_of(pair.form)
    if form is None or not (form.fits(pair.recorded) and form.fits(pair.now)):
        raise CorruptTape(
            "a volatile value cannot be read",
            cause=f"{short(pair.recorded)} and {short(pair.now)} are not of the form {short(pair.form)}",
        )
    return pair


class Bijection:
    """A one-to-one mapping between recorded and current values. Not thread-safe.

    Instants, durations and counts are not part of it (`Form.paired`). The ``most`` pairs that were used
    last are kept; older ones are forgotten.
    """

    def __init__(self, most: int = MOST_PAIRS) -> None:
        self._most = most
        self._pairs: OrderedDict[str, tuple[str, list[Pair]]] = OrderedDict()
        """By key of the recorded value: key of the current one, and the pairs in each spelling."""
        self._recorded: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._pairs)

    def pairs(self) -> list[Pair]:
        """Return all pairs, the most recently used last."""
        return [pair for _, written in self._pairs.values() for pair in written]

    def broken(self, pairs: Iterable[Pair]) -> tuple[Pair, str] | None:
        """Return the first pair that contradicts an earlier one or one of these, and a clause on it."""
        new: dict[str, tuple[str, Pair]] = {}
        back: dict[str, tuple[str, Pair]] = {}
        for pair in pairs:
            keys = _keys(pair)
            if keys is None:
                continue
            recorded, now = keys
            stands = self._now_of(recorded) or new.get(recorded)
            if stands is not None and stands[0] != now:
                says = f"recorded {short(pair.recorded)} stands for {short(stands[1].now)}"
                return pair, f"{says}, and here for {short(pair.now)}"
            before = self._recorded_of(now) or back.get(now)
            if before is not None and before[0] != recorded:
                says = f"{short(pair.now)} stands in the place of recorded {short(before[1].recorded)}"
                return pair, f"{says}, and here of {short(pair.recorded)}"
            new[recorded] = (now, pair)
            back[now] = (recorded, pair)
        return None

    def add(self, pairs: Iterable[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Keep pairs, none of which is `broken`; returns the new ones, and those dropped for them."""
        new: list[Pair] = []
        for pair in pairs:
            keys = _keys(pair)
            if keys is None:
                continue
            recorded, now = keys
            if recorded in self._pairs:
                self._pairs.move_to_end(recorded)
            else:
                self._pairs[recorded] = (now, [])
                self._recorded[now] = recorded
            written = self._pairs[recorded][1]
            if len(written) < _MOST_WRITTEN and all(one[:2] != pair[:2] for one in written):
                written.append(pair)
                new.append(pair)
        dropped: list[Pair] = []
        while len(self._pairs) > self._most:
            _, (now, written) = self._pairs.popitem(last=False)
            del self._recorded[now]
            dropped += written
        return new, dropped

    def _now_of(self, recorded: str) -> tuple[str, Pair] | None:
        found = self._pairs.get(recorded)
        return None if found is None else (found[0], found[1][0])

    def _recorded_of(self, now: str) -> tuple[str, Pair] | None:
        recorded = self._recorded.get(now)
        return None if recorded is None else (recorded, self._pairs[recorded][1][0])


def verify(
    recorded: ComparedRequest,
    now: ComparedRequest,
    pairs: Sequence[Pair],
    earlier: Bijection | None = None,
) -> Unlike | None:
    """Return None if the requests are equal up to ``pairs``; else where they are not.

    ``pairs``: as `pairs_of` returns them. ``earlier``: the mapping from the preceding requests; on
    success these pairs are added to it, so that a tape is verified request by request. Whether a clock
    or entropy handed out the values cannot be computed afterwards; that their forms are the same can.
    """
    bijection = Bijection() if earlier is None else earlier
    broken = bijection.broken(pairs)
    if broken is not None:
        pair, why = broken
        return Unlike("volatile values", short(pair.recorded), short(pair.now), why)
    found = compare(recorded, now, _Given(pairs))
    if isinstance(found, Unlike):
        return found
    bijection.add(pairs)
    return None


class _Given:
    """Vouches for given pairs."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._now: Heads[str, dict[int, dict[str, Form]]] = Heads()
        for pair in pairs:
            known = self._now.get(pair.now)
            if known is None:
                self._now.put(pair.now, known := dict[int, dict[str, Form]]())
            form = form_of(pair.form)
            if form is not None:
                known.setdefault(len(pair.recorded), {})[pair.recorded] = form

    def in_text(
        self, now: str, at: int, recorded: str, recorded_at: int, since: int
    ) -> Counterpart | str:
        """Return the longest pair that matches here on both sides."""
        best: Counterpart | None = None
        for start in range(at, max(since, at - LOOKBACK) - 1, -1):
            other = recorded_at - (at - start)
            for end, known in self._now.at(now, start):
                if end < at:
                    break
                for length, forms in known.items():
                    form = forms.get(recorded[other : other + length])
                    recorded_end = other + length
                    if form is None or (end == at and recorded_end <= recorded_at):
                        continue
                    if form.is_number and not (
                        _is_number(now, start, end) and _is_number(recorded, other, recorded_end)
                    ):
                        continue
                    if best is None or (end, recorded_end) > (best.end, best.recorded_end):
                        best = Counterpart(start, end, recorded_end, form)
        return "no volatile value is given for it" if best is None else best

    def as_number(self, now: str, recorded: str) -> Form | str:
        """Return the form of the pair."""
        known = self._now.get(now)
        form = None if known is None else known.get(len(recorded), {}).get(recorded)
        return "no volatile value is given for it" if form is None or not form.is_number else form


def _is_number(text: str, start: int, end: int) -> bool:
    """Whether exactly this part of the text is a number."""
    found = NUMBER.match(text, start)
    return found is not None and found.end() == end


def short(text: str) -> str:
    """Return a value, shortened for a message."""
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def _keys(pair: Pair) -> tuple[str, str] | None:
    """Return the keys of a pair; None for one that is not part of the mapping."""
    form = form_of(pair.form)
    if form is None or not form.paired:
        return None
    return form.key(pair.recorded), form.key(pair.now)
