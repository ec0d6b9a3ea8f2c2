"""The source of a replay: a tape answers.

A request is answered by a recording of the same request (kind, key, body): the next unused one of the
same lane; where that lane has none left, the next of another (`moved`). What no recording answers is
refused, with the nearest one and the first difference. A lookup takes the same time however long the
tape is. Bodies are compared by digest; as JSON values only where no digest fits.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from playhead_instrumentation.drivers.allowed import NOTHING, Allowed
from playhead_instrumentation.drivers.verdict import LIVE, Live, Played, Refused, Verdict
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.difference import Difference, body_difference
from playhead_semconv.errors import ExchangeExhausted, ExchangeUnmatched, TapeError
from playhead_semconv.facts import Ask, Delivery, Exchange, ExchangeId, Fidelity, digest_of
from playhead_semconv.seams import Tape
from playhead_semconv.tapes import fold_exchanges, level_of

Request: TypeAlias = tuple[str, str, bytes]
"""Kind, key, and digest of the body."""

_BOUNDARY = re.compile(rb"\A--([^\r\n]{8,70})\r\n")


class Player:
    """Answers from a tape. Safe from any thread."""

    closed = True
    fenced = True

    def __init__(self, tape: Tape, allowed: Allowed = NOTHING) -> None:
        self._tape = tape
        self._allowed = allowed
        facts = list(tape.facts())
        self._lane_names = {
            fact.lane: str(fact.attributes.get(a.PLAYHEAD_LANE_NAME, ""))
            for fact in facts
            if fact.name == e.PLAYHEAD_LANE
        }
        self.lane_ends = {
            fact.lane: fact.delivery
            for fact in facts
            if fact.name == e.PLAYHEAD_LANE and fact.delivery is not None
        }
        """When threads and jobs ended, by lane."""
        self.wakes = {
            fact.exchange: fact.delivery
            for fact in facts
            if fact.name == e.PLAYHEAD_WAKE and fact.exchange is not None and fact.delivery is not None
        }
        """When what ended by time ended."""
        self.spun = {
            int(fact.attributes[a.PLAYHEAD_SPIN_BATCH]): int(fact.attributes[a.PLAYHEAD_SPIN_TICKS])
            for fact in facts
            if fact.name == e.PLAYHEAD_SPIN
        }
        """For how many ticks a loop had spun when something was let in, by batch."""
        self.level = level_of(facts)
        self.cwd = next(
            (str(f.attributes[a.PLAYHEAD_RUN_CWD]) for f in facts if a.PLAYHEAD_RUN_CWD in f.attributes),
            "",
        )
        """The folder of the recorded run."""
        self._recordings = [
            exchange for exchange in fold_exchanges(facts).values() if exchange.ask.direction == "out"
        ]
        self._shelf = _Shelf()
        self._canonical: dict[tuple[str, str], _Shelf] = {}
        """By kind and key; made when a body fits by no digest."""
        self._of_tool: dict[tuple[int, str], deque[Exchange]] = {}
        """By lane and name; made when a tool is asked for real."""
        self._of_tool_filled = False
        self._used: set[ExchangeId] = set()
        for recording in self._recordings:
            for digest in _digests(recording):
                self._shelf.put(recording, digest)

    def exchanges(self) -> list[Exchange]:
        """The recordings, in order of their requests."""
        return self._recordings

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Verdict:
        """The recording that answers, or why none does; live what is allowed to be."""
        if ask.kind == "tool" and ask.key in self._allowed.tools:
            return self._instead(id, ask)
        found = self.find(id, ask, body)
        if found is not None:
            return self._played(found, id)
        if ask.kind == "http" and self._allowed.reaches(_host_of(ask.key)):
            return LIVE
        return Refused(self.refusal(id, ask, body))

    def find(self, id: ExchangeId, ask: Ask, body: bytes) -> Exchange | None:
        """The recording of a request, which is used from then on; None where there is none left."""
        digests = [ask.body.digest]
        if a.PLAYHEAD_REDACTED_DIGEST in ask.details:
            digests.append(_keyed(ask.details[a.PLAYHEAD_REDACTED_DIGEST]))
        for digest in digests:
            found = self._shelf.take((ask.kind, ask.key, digest), id.lane, self._used)
            if found is not None:
                return found
        return self._alike(ask, body, id.lane)

    def ended(self, id: ExchangeId) -> None:
        """Nothing depends on it."""

    def _instead(self, id: ExchangeId, ask: Ask) -> Live:
        """Live, in the place of a recording: the next of that lane with the same key."""
        waiting = self._of_tool.setdefault((id.lane, ask.key), deque())
        if not self._of_tool_filled:
            self._of_tool_filled = True
            for one in self._recordings:
                if one.ask.kind == "tool":
                    self._of_tool.setdefault((one.id.lane, one.ask.key), deque()).append(one)
        if not waiting:
            return LIVE
        recording = waiting.popleft()
        self._used.add(recording.id)
        return Live(recording, self._tape.instance)

    def _played(self, recording: Exchange, id: ExchangeId) -> Played:
        fidelity = Fidelity.EXACT if recording.id == id else Fidelity.MOVED
        return Played(recording, fidelity, self._tape.instance, self._tape.read)

    def _alike(self, ask: Ask, body: bytes, lane: int) -> Exchange | None:
        """A recording whose body says the same in other bytes."""
        shelf = self._canonical.get((ask.kind, ask.key))
        if shelf is None:
            shelf = self._canonical[ask.kind, ask.key] = _Shelf()
            for recording in self._recordings:
                if (recording.ask.kind, recording.ask.key) == (ask.kind, ask.key):
                    shelf.put(recording, digest_of(canonical(self._body_of(recording))))
        return shelf.take((ask.kind, ask.key, digest_of(canonical(body))), lane, self._used)

    def _body_of(self, recording: Exchange) -> bytes:
        try:
            return self._tape.read(recording.ask.body)
        except TapeError:
            return b""

    def refusal(self, id: ExchangeId, ask: Ask, body: bytes) -> ExchangeUnmatched | ExchangeExhausted:
        """Why nothing answers: the nearest recording, and where it differs."""
        nearest = self._nearest(id, ask)
        if nearest is None:
            return ExchangeUnmatched(
                f"nothing on the tape answers {ask.key}", cause=f"the tape holds no {ask.kind} exchange"
            )
        name = self._name(nearest.id)
        difference = self._difference(nearest, ask, body)
        if difference is None:
            return ExchangeExhausted(
                f"{name} matches {ask.key}; every recording of it is used",
                hint="the program asks once more than the tape",
            )
        return ExchangeUnmatched(
            f"nothing on the tape answers {ask.key}",
            cause=(
                f"nearest is {name}; first difference at {difference.path}: "
                f"tape {difference.tape}, now {difference.now}"
            ),
        )

    def _difference(self, nearest: Exchange, ask: Ask, body: bytes) -> Difference | None:
        if nearest.ask.key != ask.key:
            return Difference("request line", nearest.ask.key, ask.key)
        return body_difference(canonical(self._body_of(nearest)), canonical(body))

    def _nearest(self, id: ExchangeId, ask: Ask) -> Exchange | None:
        """Most like it: the same request, then the same key, the place, and being unused."""
        return max(
            (recording for recording in self._recordings if recording.ask.kind == ask.kind),
            key=lambda one: (
                (one.ask.key, one.ask.body.digest) == (ask.key, ask.body.digest),
                one.ask.key == ask.key,
                one.id == id,
                one.id.lane == id.lane,
                one.id not in self._used,
                -abs(one.id.ordinal - id.ordinal),
            ),
            default=None,
        )

    def _name(self, id: ExchangeId) -> str:
        lane = self._lane_names.get(id.lane) or f"{id.lane:016x}"
        return f"{lane}#{id.ordinal}"


class _Shelf:
    """Recordings by request, and by request and lane, each in the order of the tape."""

    def __init__(self) -> None:
        self._anywhere: dict[Request, deque[Exchange]] = {}
        self._in_lane: dict[tuple[int, Request], deque[Exchange]] = {}

    def put(self, recording: Exchange, digest: bytes) -> None:
        """Keep a recording under its request with this ``digest`` of the body."""
        request = (recording.ask.kind, recording.ask.key, digest)
        self._anywhere.setdefault(request, deque()).append(recording)
        self._in_lane.setdefault((recording.id.lane, request), deque()).append(recording)

    def take(self, request: Request, lane: int, used: set[ExchangeId]) -> Exchange | None:
        """The next unused recording of ``request``: of ``lane``, else of any; used from then on."""
        for waiting in (self._in_lane.get((lane, request)), self._anywhere.get(request)):
            while waiting:
                recording = waiting.popleft()
                if recording.id not in used:
                    used.add(recording.id)
                    return recording
        return None


def deliveries(exchanges: Iterable[Exchange]) -> Iterator[Delivery]:
    """Everything that was delivered in ``exchanges``."""
    for exchange in exchanges:
        played = Played(exchange, Fidelity.EXACT, b"", lambda content: b"")
        yield from played.deliveries()


def _digests(recording: Exchange) -> list[bytes]:
    """Under which digests a recording is found: of the body that the program made, and keyed, of what
    was redacted in it."""
    edited = recording.ask.details.get(a.PLAYHEAD_EDITED_DIGEST)
    digests = [bytes.fromhex(str(edited))] if edited else [recording.ask.body.digest]
    keyed: Any = recording.ask.details.get(a.PLAYHEAD_REDACTED_DIGEST)
    return [*digests, _keyed(keyed)] if keyed else digests


def _host_of(key: str) -> str:
    """Of a method and a URL."""
    return urlsplit(key.partition(" ")[2]).hostname or ""


def _keyed(digest: object) -> bytes:
    return b"keyed " + str(digest).encode()


def canonical(body: bytes) -> bytes:
    """The same bytes for bodies that say the same.

    JSON: keys sorted, no space. Multipart: without the boundary, which is another one each time.
    """
    if body[:1] in (b"{", b"["):
        try:
            return json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode()
        except ValueError:
            return body
    found = _BOUNDARY.match(body)
    return body if found is None else body.replace(found[1], b"boundary")
