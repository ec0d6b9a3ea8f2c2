"""Evidence that values of a request came from this replay's clock and entropy."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from playhead_core.normalize import Counterpart, Form, Pair, form_of
from playhead_core.normalize.forms import (
    NUMBER,
    SHORTEST,
    SHORTEST_NUMBER,
    decimals,
    epoch_form,
    hex_form,
    significant,
)
from playhead_core.normalize.heads import Heads
from playhead_core.normalize.instants import LONGEST as LONGEST_INSTANT
from playhead_core.normalize.instants import SECOND_NS, Instant, Stretch, instant_at
from playhead_core.normalize.pairs import LOOKBACK
from playhead_instrumentation.replayer.volatile.handed_out import HandedOut

MOST_DURATIONS: Final = 64
"""Durations that are looked up per request; each lookup goes through many reads."""

SLACK_NS: Final = SECOND_NS
"""How long before the first fact and after the last one a recorded program may have read a clock."""

SHORTEST_DURATION_S: Final = 5e-7
"""Shortest duration that counts; two reads of virtual time are a microsecond apart."""

EPOCH_STEPS: Final = 1 << 22
"""Steps per second of a float of seconds since the epoch, and of the difference of two."""

NOT_GIVEN: Final = "no clock and no entropy gave the value of now to the program"

NOT_RECORDED: Final = "the recorded time is not of the time of the recording"

_TOKEN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/")
_HEX_RUN = re.compile(r"[0-9a-fA-F-]*")
_IDS: Final = (
    re.compile(
        r"(?P<uuid>[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[167][0-9A-Fa-f]{3}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})"
    ),
    re.compile(r"(?P<hex>[0-9A-Fa-f]{12}[167][0-9A-Fa-f]{19})"),
    re.compile(r"(?P<ulid>[0-7][0-9A-HJKMNP-TV-Z]{25})"),
    re.compile(r"(?P<objectid>[0-9a-f]{24})"),
)
_BEHIND_ID = re.compile(r"[0-9A-Za-z]")
_URLSAFE: Final = str.maketrans("+/", "-_")
_PADDING = re.compile(r"={0,2}")


class Handed:
    """The evidence of one comparison."""

    def __init__(
        self,
        handed_out: HandedOut,
        known: Heads[str, Pair],
        lasted: Mapping[tuple[str, str], str],
        recorded_ns: Stretch | None,
    ) -> None:
        """``known``: pairs that were accepted before, by the value of now.

        ``lasted``: the form of durations that were accepted before, by recorded value and value of now.
        ``recorded_ns``: first and last time of the recording, since the epoch; None: not known.
        """
        self._handed = handed_out
        self._known = known
        self._lasted_before = lasted
        self._recorded_ns = recorded_ns
        self._durations = 0
        self._offsets_ns = [offset * SECOND_NS for offset in handed_out.offsets_s()]

    def in_text(
        self, now: str, at: int, recorded: str, recorded_at: int, since: int
    ) -> Counterpart | str:
        """The span of a value that was handed out and has a counterpart on the tape; else the reason."""
        given = next(self._candidates(now, at, since), None)
        if given is not None:
            # A value that was handed out as a whole is not looked up in parts.
            start, end, form = given
            other = recorded_at - (at - start)
            recorded_end = form.end(recorded, other)
            if recorded_end is None:
                return f"the recorded value is not of the form {form.name}"
            if not self._was_recorded(form, recorded[other:recorded_end]):
                return NOT_RECORDED
            return Counterpart(start, end, recorded_end, form)
        found = self._instant(now, at, recorded, recorded_at, since)
        if found is None:
            found = self._number(now, at, recorded, recorded_at, since)
        return NOT_GIVEN if found is None else found

    def as_number(self, now: str, recorded: str) -> Form | str:
        """The form of a number that was handed out and of the recorded one; else the reason."""
        why = NOT_GIVEN
        before = form_of(self._lasted_before.get((recorded, now), ""))
        if before is not None:
            return before
        for name, was_given in self._forms_of(now, recorded):
            form = form_of(name)
            if form is None or not form.fits(now) or not was_given():
                continue
            if not form.fits(recorded):
                why = f"the recorded value is not of the form {form.name}"
            elif not self._was_recorded(form, recorded):
                why = NOT_RECORDED
            else:
                return form
        if len(now) in (8, 14) and now.isdigit():
            found = self._instant(now, 0, recorded, 0, 0)
            if isinstance(found, Counterpart) and (found.end, found.recorded_end) == (
                len(now),
                len(recorded),
            ):
                return found.form
        return why

    # Ids: whether they were handed out is seen from the draws or instants that they are made from.

    def _candidates(self, now: str, at: int, since: int) -> Iterator[tuple[int, int, Form]]:
        """Spans of ``now`` that contain ``at`` and were handed out, the nearest start first."""
        for start in range(at, max(since, at - LOOKBACK) - 1, -1):
            if now[start : start + 1] not in _TOKEN:
                if start < at:
                    break
                continue
            # The longest; of these, the first. A UUID begins like the bytes that it is made from.
            longest = max(self._starting(now, start), key=lambda one: one[0], default=None)
            form = None if longest is None else form_of(longest[1])
            if longest is not None and form is not None and longest[0] > at:
                yield start, longest[0], form
        yield from self._ending(now, at, since)
        yield from self._with_time(now, at, since)

    def _starting(self, now: str, start: int) -> Iterator[tuple[int, str]]:
        """Handed-out values at ``start``: where each ends, and its form."""
        for end, pair in self._known.at(now, start):
            yield end, pair.form
        head = now[start : start + SHORTEST]
        if len(head) < SHORTEST:
            return
        end = self._handed.text_at(now, start)
        if end is not None:
            yield end, f"text:{end - start}"
        try:
            drawn = self._handed.beginning_with(bytes.fromhex(head) if _is_hex(head) else b"")
        except ValueError:
            drawn = []
        for data in drawn:
            for text, version in _written(data):
                size = _shared(text, now[start : start + len(text)].lower())
                span = now[start : start + size].rstrip("-")
                name = hex_form(span, version) if len(span) >= SHORTEST else None
                if name is not None:
                    yield start + len(span), name
        try:
            first = base64.b64decode(head.translate(_URLSAFE), b"-_", validate=True)[:4]
        except ValueError:
            return
        for data in self._handed.beginning_with(first):
            text = base64.b64encode(data, b"-_").decode().rstrip("=")
            size = _shared(text, now[start : start + len(text)].translate(_URLSAFE))
            if size < SHORTEST:
                continue
            end, name = start + size, f"base64:{size}"
            padding = _PADDING.match(now, end) if size == len(text) else None
            if padding is not None and padding[0] and (size + len(padding[0])) % 4 == 0:
                end, name = padding.end(), f"{name}:{len(padding[0])}"
            yield end, name

    def _ending(self, now: str, at: int, since: int) -> Iterator[tuple[int, int, Form]]:
        """Tails of hex values: as many digits as match."""
        run = _HEX_RUN.match(now, at, at + 2 * LOOKBACK)
        end = at if run is None else at + len(run[0].rstrip("-"))
        tail = now[max(since, end - 12) : end].replace("-", "")[-SHORTEST:]
        if end == at or len(tail) < SHORTEST or not _is_hex(tail):
            return
        for data in self._handed.ending_with(bytes.fromhex(tail)):
            whole = [text for text, _ in _written(data)]
            before = [now[max(since, end - len(text)) : end].lower() for text in whole]
            sizes = [_shared(one[::-1], two[::-1]) for one, two in zip(whole, before, strict=True)]
            if any(size == len(text) for size, text in zip(sizes, whole, strict=True)):
                continue  # the whole value matches: `_starting` has found it, if it is one
            span = now[end - max(sizes) : end].lstrip("-")
            name = hex_form(span) if len(span) >= SHORTEST else None
            form = None if name is None else form_of(name)
            if form is not None and end - len(span) <= at:
                yield end - len(span), end, form

    def _with_time(self, now: str, at: int, since: int) -> Iterator[tuple[int, int, Form]]:
        """Ids that contain a handed-out instant: UUIDs of versions 1, 6 and 7, ULIDs, ObjectIds."""
        for start in range(at, max(since, at - LOOKBACK) - 1, -1):
            if start and now[start - 1].isalnum():
                continue
            for pattern in _IDS:
                found = pattern.match(now, start)
                if found is None or found.end() <= at or _BEHIND_ID.match(now, found.end()):
                    continue
                kind = str(found.lastgroup)
                version = found[0].replace("-", "")[12] if kind in ("uuid", "hex") else "-"
                form = form_of(kind if version == "-" else hex_form(found[0], version) or "")
                stretch = None if form is None else form.stretch(found[0])
                if form is not None and stretch is not None and self._handed.has_time(*stretch):
                    yield start, found.end(), form

    # Instants.

    def _instant(
        self, now: str, at: int, recorded: str, recorded_at: int, since: int
    ) -> Counterpart | str | None:
        """The instant at ``at``, or why it does not count; None where there is no instant."""
        start = max(since, at - LONGEST_INSTANT)
        while start <= at:
            instant = instant_at(now, start)
            if instant is None or instant.end <= at:
                start = start + 1 if instant is None else instant.end
                continue
            other = recorded_at - (at - start)
            on_tape = instant_at(recorded, other)
            form = form_of(f"time:{instant.layout}")
            why = self._why_not(instant, on_tape)
            if why or on_tape is None or form is None:
                return why
            return Counterpart(start, instant.end, on_tape.end, form)
        return None

    def _why_not(self, now: Instant, recorded: Instant | None) -> str:
        """Why two instants do not match.

        Empty where each is of its own run's time, and both have the same layout and zone.
        """
        has = self._handed.has_time_of_day if now.of_day else self._handed.has_time
        given = [
            (index, offset)
            for index, (first, past) in enumerate(now.readings)
            for offset in ((0,) if now.zoned else self._offsets_ns)
            if has(first - offset, past - offset)
        ]
        if not given:
            return NOT_GIVEN
        if recorded is None or recorded.layout != now.layout:
            return "the recorded value is not an instant that is written alike"
        for index, offset in given:
            first, past = recorded.readings[index]
            if self._is_recorded(first - offset, past - offset, now.of_day):
                return ""
        return NOT_RECORDED

    def _is_recorded(self, first_ns: int, past_ns: int, of_day: bool = False) -> bool:
        if self._recorded_ns is None:
            return True
        start, end = self._recorded_ns[0] - SLACK_NS, self._recorded_ns[1] + SLACK_NS
        if not of_day:
            return first_ns <= end and past_ns > start
        day = 86_400 * SECOND_NS
        # The first such time of day that is not over at the start of the recording.
        shift = max(0, (start - past_ns) // day + 1) * day
        return first_ns + shift <= end

    def _was_recorded(self, form: Form, recorded: str) -> bool:
        if form.kind == "duration":
            return self._recorded_ns is None or _duration_ns(form, recorded) <= (
                self._recorded_ns[1] - self._recorded_ns[0] + 2 * SLACK_NS
            )
        stretch = form.stretch(recorded)
        return stretch is None or self._is_recorded(*stretch)

    # Numbers.

    def _number(
        self, now: str, at: int, recorded: str, recorded_at: int, since: int
    ) -> Counterpart | str | None:
        """The number at ``at``, or why it does not count; None where there is no number."""
        start = at
        while start > max(since, at - LOOKBACK) and now[start - 1] in "0123456789.eE+-":
            start -= 1
        while start <= at:
            found = NUMBER.match(now, start)
            other = NUMBER.match(recorded, recorded_at - (at - start))
            if found is None or other is None or found.end() < at:
                start += 1
                continue
            if found.end() == at and other.end() == recorded_at:
                return None
            form = self.as_number(found[0], other[0])
            if isinstance(form, str):
                return form
            return Counterpart(start, found.end(), other.end(), form)
        return None

    def _forms_of(self, number: str, recorded: str) -> Iterator[tuple[str, Callable[[], bool]]]:
        """The forms that a number may have, each with a check whether it was handed out as such."""
        known = self._known.get(number)
        if known is not None:
            yield known.form, lambda: True
        epoch = epoch_form(number)
        if number.isdigit():
            if SHORTEST_NUMBER <= len(number) <= 64 and number[0] != "0":
                yield f"decimal:{len(number)}", lambda: self._drew(int(number))
            if epoch is not None:
                yield epoch, lambda: self._has_stretch(epoch, number)
            if 10 <= len(number) <= 18:
                yield "count:ns", lambda: self._handed.has_count(int(number), int(number) + 1)
            return
        try:
            value = float(number)
        except ValueError:
            return
        if significant(number) >= SHORTEST:
            name = "fraction" if 0 <= value < 1 else "float"
            yield name, lambda: self._handed.has_float(value)
        if epoch is not None:
            yield epoch, lambda: self._has_stretch(epoch, number)
        if decimals(number) >= 6:
            yield "count:s", lambda: self._counted(value, number)
        # A recorded duration has noise in its digits; in virtual time it may have few digits.
        if decimals(recorded) >= 5 and significant(recorded) >= 4:
            yield "duration:s", lambda: self._lasted(value)
            yield "duration:ms", lambda: self._lasted(value / 1e3)

    def _has_stretch(self, name: str, number: str) -> bool:
        form = form_of(name)
        stretch = None if form is None else form.stretch(number)
        return stretch is not None and self._handed.has_time(*stretch)

    def _drew(self, number: int) -> bool:
        """Whether a draw, or a part of one, is this whole number, in either byte order."""
        size = max(4, (number.bit_length() + 7) // 8)
        ordered = number.to_bytes(size, "big"), number.to_bytes(size, "little")
        for data in (
            *self._handed.ending_with(ordered[0][-4:]),
            *self._handed.beginning_with(ordered[0][:4]),
        ):
            for one in _as_bytes(data):
                if number == int.from_bytes(one, "big") or ordered[0] in (one[:size], one[-size:]):
                    return True
        for data in self._handed.beginning_with(ordered[1][:4]):
            if any(number == int.from_bytes(one, "little") for one in _as_bytes(data)):
                return True
        return False

    def _counted(self, value: float, number: str) -> bool:
        count, around = round(value * 1e9), 10 ** max(0, 9 - decimals(number)) + 200
        return self._handed.has_count(count - around, count + around)

    def _lasted(self, duration_s: float) -> bool:
        self._durations += 1
        if self._durations > MOST_DURATIONS or duration_s < SHORTEST_DURATION_S:
            return False
        # Differences of floats since the epoch have this step. Other clocks are exact or rounded.
        steps = (duration_s * EPOCH_STEPS, duration_s * 1e6)
        is_rough = any(abs(number - round(number)) < 1e-5 for number in steps)
        return self._handed.has_duration(duration_s * 1e9, 500.0 if is_rough else 2.0)


def _duration_ns(form: Form, number: str) -> float:
    return float(number) * (1e9 if form.name == "duration:s" else 1e6)


def _is_hex(text: str) -> bool:
    return all(sign in "0123456789abcdefABCDEF" for sign in text)


def _as_bytes(data: bytes) -> Iterator[bytes]:
    """A draw, and the UUID of version 4 that is made from it."""
    yield data
    if len(data) == 16:
        yield uuid.UUID(bytes=data, version=4).bytes


def _written(data: bytes) -> Iterator[tuple[str, str]]:
    """A draw in hex, and the UUIDs made from it in each notation; each text with its UUID version."""
    yield data.hex(), "-"
    if len(data) == 16:
        made, as_it_is = uuid.UUID(bytes=data, version=4), uuid.UUID(bytes=data)
        yield made.hex, "4"
        yield str(made), "4"
        yield str(as_it_is), str(as_it_is.version) if as_it_is.version in (1, 6, 7) else "-"


def _shared(text: str, other: str) -> int:
    """Length of the common prefix of two short texts."""
    if text == other:
        return len(text)
    for index, (one, two) in enumerate(zip(text, other, strict=False)):
        if one != two:
            return index
    return min(len(text), len(other))
