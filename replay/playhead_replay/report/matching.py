"""Matches each exchange of a replay with the recording that answered it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from playhead_core.difference import Difference, body_difference, message_difference, shown
from playhead_core.errors import CorruptTape
from playhead_core.facts import Fidelity
from playhead_core.normalize import Bijection, ComparedRequest, pairs_of, verify
from playhead_core.normalize.documents import with_fixed_boundary
from playhead_core.normalize.tracebacks import HEADER_WORDS, reduced_body
from playhead_replay.run.exchanges import RecordedExchange
from playhead_semconv import attributes as a

MESSAGES = ("websocket", "grpc")
"""Exchanges in which the program sends a sequence of messages."""


@dataclass(slots=True)
class Match:
    """One exchange of the *now* tape with the recording that answered it, or the nearest one."""

    now: RecordedExchange
    fidelity: Fidelity
    recorded: RecordedExchange | None
    """The recording that answered it; None when it was blocked or went live."""
    nearest: RecordedExchange | None = None
    """For a blocked exchange: the most similar recording."""
    difference: Difference | None = None
    """Difference between the request and its recording, or the nearest one."""

    @property
    def by_traceback(self) -> bool:
        """Whether the requests differ in the frames of libraries in a traceback."""
        sides = self.recorded, self.now
        if self.fidelity is Fidelity.CHANGED or self.recorded is None:
            return False
        if self.recorded.digest == self.now.digest:
            return False
        return all(side is not None and HEADER_WORDS in side.request for side in sides)

    @property
    def exhausted(self) -> bool:
        """Whether it was blocked because every matching recording was used already."""
        return self.fidelity is Fidelity.BLOCKED and self.nearest is not None and not self.difference


@dataclass(slots=True)
class Matching:
    """All exchanges of a replay, matched with the tape."""

    matches: list[Match]
    """In order of the requests of the replay."""
    unused: list[RecordedExchange]
    """Recordings that answered no request."""


def match(
    tape: Iterable[RecordedExchange], now: Iterable[RecordedExchange], *, placed: bool = True
) -> Matching:
    """Find the recording that answered each exchange of ``now``.

    ``placed``: whether the lane and the position within it count.

    The player states the match on the request fact; the statement is checked against the bytes. Without
    a statement (when two recordings are compared), the same id and request are ``exact``, the same
    request elsewhere is ``moved``, and another request under the same id is ``changed``.
    """
    recordings = list(tape)
    shelf = _Shelf(recordings, placed=placed)
    matches = [shelf.judge(exchange) for exchange in now]
    for found in matches:
        if found.fidelity is Fidelity.BLOCKED:
            found.nearest = shelf.nearest(found.now)
            if found.nearest is not None:
                found.difference = _said(found.now) or request_difference(found.nearest, found.now)
    unused = [one for one in recordings if id(one) not in shelf.used and not _stands(one)]
    return Matching(matches, unused)


def request_difference(tape: RecordedExchange, now: RecordedExchange) -> Difference | None:
    """The first difference between two requests in what counts for matching: key, then body."""
    if tape.key != now.key:
        return Difference("request line", tape.key, now.key)
    same = tape.digest and tape.digest == now.digest
    found = None if same else body_difference(reduced_body(tape.request), reduced_body(now.request))
    return found or sent_difference(tape, now)


def differs_in_pairs(tape: RecordedExchange, now: RecordedExchange, earlier: Bijection) -> bool:
    """Whether two requests differ only in values that the replay handed out.

    ``earlier``: the value pairs of earlier requests, which must not be contradicted.
    """
    left, right = tape.exchange, now.exchange
    asked = (
        ComparedRequest.of(with_fixed_boundary(tape.request), tape.key),
        ComparedRequest.of(with_fixed_boundary(now.request), now.key),
    )
    sides = [(*asked, right.ask.details)]
    if len(left.sent) != len(right.sent) and now.id.kind in MESSAGES:
        return False
    if now.id.kind in MESSAGES:
        sides += [
            (
                ComparedRequest.of(tape.sent(number)),
                ComparedRequest.of(now.sent(number)),
                right.sent[number].attributes,
            )
            for number in range(len(right.sent))
        ]
    try:
        for before, after, at in sides:
            pairs = pairs_of(str(at.get(a.PLAYHEAD_VOLATILE_PAIRS, "[]")))
            if verify(before, after, pairs, earlier) is not None:
                return False
    except CorruptTape:
        return False
    return True


def sent_difference(tape: RecordedExchange, now: RecordedExchange) -> Difference | None:
    """The first difference in the messages that the program sent during the exchange."""
    if now.id.kind not in MESSAGES:
        return None
    left, right = tape.exchange.sent, now.exchange.sent
    for number in range(max(len(left), len(right))):
        if number >= len(left):
            return Difference(f"message {number + 1}", "(absent)", shown(now.sent(number)))
        if number >= len(right):
            return Difference(f"message {number + 1}", shown(tape.sent(number)), "(absent)")
        found = message_difference(
            number,
            (tape.sent(number), left[number].attributes),
            (now.sent(number), right[number].attributes),
        )
        if found is not None:
            return found
    return None


class _Shelf:
    """The recordings, indexed by number, id and key."""

    def __init__(self, recordings: list[RecordedExchange], *, placed: bool) -> None:
        self._recordings = recordings
        self._placed = placed
        self._pairs = Bijection()
        self._by_seq = {(one.instance, one.first_seq): one for one in recordings}
        self._by_id = {one.id: one for one in recordings}
        self._by_key: dict[str, list[RecordedExchange]] = {}
        for one in recordings:
            self._by_key.setdefault(one.key, []).append(one)
        self.used: set[int] = set()

    def judge(self, now: RecordedExchange) -> Match:
        stated = _stated(now)
        recorded = self._by_seq.get(_origin(now))
        if stated is Fidelity.BLOCKED or stated is Fidelity.LIVE:
            if recorded is not None:  # it answered up to the point of difference
                self.used.add(id(recorded))
            return Match(now, stated, None)
        if recorded is None and stated is None:
            recorded = self._unstated(now)
        if recorded is None:
            return Match(now, Fidelity.BLOCKED, None)
        self.used.add(id(recorded))
        now.origin = recorded
        difference = request_difference(recorded, now)
        rebuilt = stated is Fidelity.SEMANTIC  # its answer comes from a span: it is exact in nothing
        if difference is not None:
            if differs_in_pairs(recorded, now, self._pairs):
                varied = Fidelity.SEMANTIC if rebuilt else Fidelity.VOLATILE
                return Match(now, varied, recorded, difference=difference)
            return Match(now, Fidelity.CHANGED, recorded, difference=difference)
        placed = self._placed and not _stands(now)
        if placed and (stated is Fidelity.MOVED or recorded.id != now.id):
            return Match(now, Fidelity.MOVED, recorded)
        return Match(now, Fidelity.SEMANTIC if rebuilt else Fidelity.EXACT, recorded)

    def _unstated(self, now: RecordedExchange) -> RecordedExchange | None:
        same_id = self._by_id.get(now.id)
        free = [one for one in self._by_key.get(now.key, []) if id(one) not in self.used]
        if same_id is not None and same_id in free:
            free.insert(0, same_id)
        for one in free:
            if request_difference(one, now) is None:
                return one
        return same_id if same_id is not None and id(same_id) not in self.used else None

    def nearest(self, now: RecordedExchange) -> RecordedExchange | None:
        """The most similar recording, by: same key, same body, same place, being unused."""
        digest = now.digest
        return max(
            (one for one in self._recordings if one.id.kind == now.id.kind),
            key=lambda one: (
                one.key == now.key,
                bool(digest) and one.digest == digest,
                one.id == now.id,
                one.id.lane == now.id.lane,
                id(one) not in self.used,
                -abs(one.id.ordinal - now.id.ordinal),
            ),
            default=None,
        )


def _stands(exchange: RecordedExchange) -> bool:
    """Whether it makes something that stays, which is not asked for each time."""
    return exchange.exchange.ask.details.get(a.PLAYHEAD_ASK_STANDING) is not None


def _stated(now: RecordedExchange) -> Fidelity | None:
    exchange = now.exchange
    if exchange.fidelity is Fidelity.BLOCKED:  # blocked from some message on
        return exchange.fidelity
    stated = exchange.ask.details.get(a.PLAYHEAD_FIDELITY, exchange.head.get(a.PLAYHEAD_FIDELITY))
    return exchange.fidelity if stated is None else Fidelity(stated)


def _said(now: RecordedExchange) -> Difference | None:
    """The first difference from the nearest recording, as the replay stated it."""
    said: object = now.exchange.ask.details.get(a.PLAYHEAD_BLOCKED_DIFFERENCE)
    if not isinstance(said, list) or len(cast("list[object]", said)) != 3:
        return None
    return Difference(*map(str, cast("list[object]", said)))


def _origin(now: RecordedExchange) -> tuple[str, int]:
    if now.exchange.origin is not None:
        instance, seq = now.exchange.origin
        return instance.hex(), seq
    for at in (now.exchange.ask.details, now.exchange.head):
        if a.PLAYHEAD_ORIGIN_SEQ in at:
            return str(at.get(a.PLAYHEAD_ORIGIN_INSTANCE, "")), int(at[a.PLAYHEAD_ORIGIN_SEQ])
    return "", -1
