"""The source of a replay: a tape answers.

A request is answered by a recording of the same request (kind, key, body): the next unused one of the
same lane, or, where that lane has none left, the next of another lane (`moved`). A request without a
recording is refused; the refusal names the nearest recording and the first difference. The time of a
lookup does not depend on the length of the tape. Bodies are compared by digest. Where no digest matches,
they are compared as JSON values. Where no value matches either, and the replay has handed out times or
random values that no tape holds, they are compared leaf by leaf.
"""

from __future__ import annotations

import sys
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from playhead_core.difference import Difference, body_difference
from playhead_core.errors import ExchangeExhausted, ExchangeUnmatched, TapeError
from playhead_core.facts import Ask, Delivery, Exchange, ExchangeId, Fidelity, digest_of
from playhead_core.file_names import real_name
from playhead_core.normalize import ComparedRequest, Unlike
from playhead_core.normalize.documents import with_fixed_boundary
from playhead_core.tape.coalesced import ends_of
from playhead_core.tape.folds import is_inbound, level_of
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_instrumentation.recorder.decision import LIVE, Decision, Live, Played, Refused
from playhead_instrumentation.recorder.options import NOTHING, Allowed
from playhead_instrumentation.recorder.played_exchange import deliveries_of
from playhead_instrumentation.recorder.unused import UnusedResponses
from playhead_instrumentation.replayer.matching import (
    ReusableResponses,
    canonical,
    digests_of,
    host_of,
    is_encoded,
    is_model_call,
    is_standing,
)
from playhead_instrumentation.replayer.signals import RecordedSignal, signals_of
from playhead_instrumentation.replayer.volatile import HandedOut, Proposal, Volatile
from playhead_instrumentation.replayer.volatile.translation import TranslatedParts
from playhead_instrumentation.scheduler.gates.tape_order import Order
from playhead_semconv import attributes as a
from playhead_semconv import events as e

Question: TypeAlias = tuple[str, str, bytes]
"""Kind, key and digest of the body of a request."""


MODEL = "\0model"
"""Stands for all model calls where recordings are found by lane and key."""

CANDIDATES = 64
"""Recordings that are compared leaf by leaf, of the asking lane and again of all lanes."""


class FoundRecording(NamedTuple):
    """The recording that answers a request."""

    exchange: Exchange
    pairs: str | None = None
    """Pairs of recorded values and values of now, in the format of the tape; None: no pairs."""


class RecordedAsk(NamedTuple):
    """The fields by which an exchange on the tape is found; the rest is read when it answers."""

    id: ExchangeId
    key: str
    digest: bytes


class Player:
    """Answers from a tape. Safe from any thread."""

    closed = True
    fenced = True

    def __init__(self, tape: IndexedTape, allowed: Allowed = NOTHING) -> None:
        self._tape = tape
        self.handed = HandedOut()
        """Values that the replay's clock and entropy gave the program and that no tape holds."""
        self.volatile = Volatile(self.handed, _stretch(tape))
        self.on_match: Callable[[Exchange], None] = _ignore
        """Called with each recording that answers."""
        self._allowed = allowed
        self._lane_names: dict[int, str] = {}
        self.lane_ends: dict[int, Delivery] = {}
        """Deliveries of the ends of threads and jobs, by lane."""
        for fact in tape.named(e.PLAYHEAD_LANE):
            self._lane_names[fact.lane] = str(fact.attributes.get(a.PLAYHEAD_LANE_NAME, ""))
            if fact.delivery is not None:
                self.lane_ends[fact.lane] = fact.delivery
        self.wakes = dict(end for fact in tape.named(e.PLAYHEAD_WAKE) for end in ends_of(fact))
        """Deliveries of the ends of sleeps, timers and timeouts."""
        self.spun = {
            int(fact.attributes[a.PLAYHEAD_SPIN_BATCH]): int(fact.attributes[a.PLAYHEAD_SPIN_TICKS])
            for fact in tape.named(e.PLAYHEAD_SPIN)
        }
        """Ticks that a loop had spun when something was let in, by batch."""
        self.level = level_of(tape.named(e.PLAYHEAD_PROCESS_START, e.PLAYHEAD_PROCESS_EXIT))
        starts = tape.named(e.PLAYHEAD_PROCESS_START)
        self.cwd = real_name(
            next((str(one.attributes.get(a.PLAYHEAD_RUN_CWD, "")) for one in starts), "")
        )
        """Working folder of the recorded run; empty where it is not on the tape."""
        self.signals: list[RecordedSignal] = []
        """Signals whose handlers ran; not those of a service, whose requests are replayed alone."""
        self.order = Order()
        """All deliveries of the tape."""
        self._recordings: list[RecordedAsk] = []
        self.requests: list[Played] = []
        """Requests that came in to the program."""
        self._shelf: UnusedResponses[Question] = UnusedResponses()
        self._canonical: dict[tuple[str, str], UnusedResponses[bytes]] = {}
        """Recordings by kind and key; built when no digest matches a body."""
        self._varying = threading.Lock()
        """Held while a request is compared leaf by leaf."""
        self._queues: dict[tuple[str, int | None], deque[int]] | None = None
        """Recordings by kind and lane (None: all lanes), without used ones at the front; built when no
        body matches a request."""
        self._of_live: dict[tuple[int, str], deque[int]] | None = None
        """Recordings of tools by lane and name, of model calls by lane; built when one is called for
        real."""
        self._answered: dict[Question, Exchange] = {}
        """The last recording that answered a question; kept where model calls are real."""
        self._standing: ReusableResponses[Question] = ReusableResponses()
        """Recordings of asks whose answer stands for later ones."""
        serves = any(is_inbound(fact) for fact in tape.named(e.PLAYHEAD_EXCHANGE_REQUEST))
        stands = serves or self.level != "strict"
        for id in tape.exchange_ids():
            exchange = tape.exchange(id)
            if exchange is None:
                continue
            if stands and is_standing(exchange.ask, serves=serves) and exchange.end is not None:
                self._stand(exchange)
                if is_there(exchange):
                    continue
            self.order.add(deliveries((exchange,)))
            if exchange.ask.direction == "out":
                self._keep(exchange)
            else:
                self.requests.append(
                    Played(
                        exchange, tape.instance, tape.read, fidelity=Fidelity.EXACT, varied=self.varied
                    )
                )
        self._first_unused = 0
        self._expected = deque(self.requests)
        if not serves:
            self.signals = list(signals_of(tape))
        self.order.add(one.due for one in self.signals)
        self.order.add(self.lane_ends.values())
        self.order.add(self.wakes.values())

    def _stand(self, exchange: Exchange) -> None:
        """Keep a recording that also answers whoever asks later, or that what was asked failed here."""
        number, ask = None, exchange.ask
        if is_there(exchange):
            number = len(self._recordings)
            self._recordings.append(RecordedAsk(exchange.id, ask.key, ask.body.digest))
            self._shelf.use(number)
        for digest in digests_of(ask):
            self._standing.add((ask.kind, ask.key, digest), exchange.id.lane, number)

    def _keep(self, exchange: Exchange) -> None:
        number, ask = len(self._recordings), exchange.ask
        key = sys.intern(ask.key)
        self._recordings.append(RecordedAsk(exchange.id, key, ask.body.digest))
        for digest in digests_of(ask):
            self._shelf.put(number, (sys.intern(ask.kind), key, digest), exchange.id.lane)

    def came(self) -> list[Exchange]:
        """The exchanges that began outside the process: inbound requests."""
        return [played.exchange for played in self.requests]

    def expects(self) -> tuple[str, Played] | None:
        """The name of the lane root of the next inbound request, and the request; None: none is left."""
        if not self._expected:
            return None
        played = self._expected.popleft()
        return self._lane_names.get(played.exchange.id.lane, ""), played

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Decision:
        """The recording that answers, or the refusal; live for what is allowed to be live."""
        if ask.kind == "tool" and ask.key in self._allowed.tools:
            return self._instead(id.lane, ask.key)
        if self._allowed.model:
            return self._beside_model(id, ask, body)
        standing = self.standing(id.lane, ask)
        if standing is not None:
            return standing
        found = self.find(id, ask, body)
        if found is not None:
            return self._played(found, id)
        if ask.kind == "http" and self._allowed.reaches(host_of(ask.key)):
            return LIVE
        return self.refusal(id, ask, body)

    def standing(self, lane: int, ask: Ask) -> Played | None:
        """Return the reusable response of a request; None: there is none, or the request failed here."""
        if not is_standing(ask):
            return None
        for digest in digests_of(ask):
            number = self._standing.answer((ask.kind, ask.key, digest), lane)
            if number is not None:
                return self._made(self._exchange(number), Fidelity.EXACT)
        return None

    def _made(self, recording: Exchange, fidelity: Fidelity) -> Played:
        """The decision of a recording that may answer more than once, as soon as it is asked."""
        return Played(
            _undelivered(recording),
            self._tape.instance,
            self._tape.read,
            fidelity=fidelity,
            elsewhere=False,
            made=True,
        )

    def find(self, id: ExchangeId, ask: Ask, body: bytes) -> FoundRecording | None:
        """Take the recording of a request, which counts as used then; None where none is left."""
        for digest in digests_of(ask):
            found = self._shelf.take((ask.kind, ask.key, digest), id.lane)
            if found is not None:
                return FoundRecording(self._exchange(found[0]))
        number = self._alike(ask, body, id.lane)
        return (
            self._varied(ask, body, id.lane)
            if number is None
            else FoundRecording(self._exchange(number))
        )

    def exchanges(self) -> Iterator[Exchange]:
        """The recordings, in order of their requests."""
        return map(self._exchange, range(len(self._recordings)))

    def left(self) -> Iterator[Exchange]:
        """The recordings that were not used."""
        return (
            self._exchange(number)
            for number in range(len(self._recordings))
            if not self._shelf.used(number)
        )

    def unasked_ns(self) -> int | None:
        """When the first unused request was made, in nanoseconds since the epoch; None: all are used."""
        number = self._first_unused
        while number < len(self._recordings) and self._shelf.used(number):
            number += 1
        self._first_unused = number
        return self._exchange(number).time_ns if number < len(self._recordings) else None

    def _beside_model(self, id: ExchangeId, ask: Ask, body: bytes) -> Decision:
        """Live for a call of a model; for all else a recording, which may answer more than once."""
        if ask.kind == "http" and is_model_call(ask.key, body):
            return self._instead(id.lane, MODEL)
        question = ask.kind, ask.key, ask.body.digest
        found = self.find(id, ask, body)
        if found is not None:
            self._answered[question] = found.exchange
            return self._played(found, id)
        recording = self._answered.get(question)
        if recording is None:
            return self.refusal(id, ask, body)
        return self._made(recording, Fidelity.MOVED)

    def _instead(self, lane: int, key: str) -> Live:
        """Live in place of a recording: the next of that lane of the same tool, or of a model."""
        if self._of_live is None:
            self._of_live = {}
            for number, one in enumerate(self._recordings):
                if one.id.kind == "tool":
                    self._of_live.setdefault((one.id.lane, one.key), deque()).append(number)
                elif one.id.kind == "http" and is_model_call(one.key, self._body_of(number)):
                    self._of_live.setdefault((one.id.lane, MODEL), deque()).append(number)
        waiting = self._of_live.get((lane, key))
        if not waiting:
            return LIVE
        number = waiting.popleft()
        self._shelf.use(number)
        return Live(self._exchange(number), self._tape.instance)

    def _use(self, number: int) -> None:
        """Count a recording as used."""
        self._shelf.use(number)

    def _exchange(self, number: int) -> Exchange:
        found = self._tape.exchange(self._recordings[number].id)
        assert found is not None
        return found

    def _played(self, found: FoundRecording, id: ExchangeId) -> Played:
        recording, pairs = found
        self.on_match(recording)
        # Where only exchanges are recorded, the order in which lanes ask is not known.
        here = recording.id == id or self.level == "exchanges"
        fidelity = Fidelity.EXACT if here else Fidelity.MOVED
        if pairs is not None:
            fidelity = Fidelity.VOLATILE
        rebuilt = is_rebuilt(recording)
        return Played(
            recording,
            self._tape.instance,
            self._tape.read,
            translated=self._translated(recording),
            fidelity=Fidelity.SEMANTIC if rebuilt else fidelity,
            elsewhere=not rebuilt,  # no store has a tape that was made from spans
            made=rebuilt,  # spans do not tell in which order answers came
            pairs=pairs,
            varied=self.varied,
        )

    def _translated(self, recording: Exchange) -> TranslatedParts | None:
        if not len(self.volatile) or is_encoded(recording):
            return None
        parts = (self._tape.read(part.data) for part in recording.parts)
        return TranslatedParts(parts, self.volatile.translated_parts)

    def _varied(self, ask: Ask, body: bytes, lane: int) -> FoundRecording | None:
        """A recording that differs only in values that were handed out, of this lane first."""
        if not self.handed:
            return None
        now = ComparedRequest.of(with_fixed_boundary(body), ask.key)
        with self._varying:
            for number in self._candidates(ask.kind, lane):
                recorded = self._exchange(number)
                before = ComparedRequest.of(with_fixed_boundary(self._body_of(number)), recorded.ask.key)
                proposal = self.volatile.compare(before, now)
                if not isinstance(proposal, Proposal) or not self._shelf.use(number):
                    continue
                if self.volatile.accept(proposal) is None:
                    return FoundRecording(recorded, proposal.text)
                self._shelf.give_back(number)  # another thread has just accepted a contradicting pair
        return None

    def _candidates(self, kind: str, lane: int) -> Iterator[int]:
        """Unused recordings to compare, limited in number so that the comparison stays short."""
        here = self._unused(kind, lane)
        yield from here
        if self.level == "exchanges":
            yield from (number for number in self._unused(kind, None) if number not in here)

    def _unused(self, kind: str, lane: int | None) -> list[int]:
        """The first unused recordings of a kind, of one lane or (None) of all lanes."""
        if self._queues is None:
            self._queues = {}
            for number, one in enumerate(self._recordings):
                for of in (one.id.lane, None):
                    self._queues.setdefault((one.id.kind, of), deque()).append(number)
        queue = self._queues.get((kind, lane), deque[int]())
        while queue and self._shelf.used(queue[0]):
            queue.popleft()
        return list(islice((number for number in queue if not self._shelf.used(number)), CANDIDATES))

    def varied(self, recorded: ComparedRequest, now: ComparedRequest) -> str | None:
        """The handed-out values in place of recorded ones; None where the requests differ otherwise."""
        proposal = self.volatile.compare(recorded, now)
        if not isinstance(proposal, Proposal) or self.volatile.accept(proposal) is not None:
            return None
        return proposal.text

    def _alike(self, ask: Ask, body: bytes, lane: int) -> int | None:
        """A recording whose body has the same meaning in other bytes."""
        shelf = self._canonical.get((ask.kind, ask.key))
        if shelf is None:
            shelf = self._canonical[ask.kind, ask.key] = UnusedResponses()
            for number, one in enumerate(self._recordings):
                if (one.id.kind, one.key) == (ask.kind, ask.key):
                    shelf.put(number, digest_of(canonical(self._body_of(number))), one.id.lane)
        while (found := shelf.take(digest_of(canonical(body)), lane)) is not None:
            if self._shelf.use(found[0]):
                return found[0]
        return None

    def _body_of(self, number: int) -> bytes:
        recorded = self._exchange(number)
        try:
            return self._tape.read(recorded.asked or recorded.ask.body)
        except TapeError:
            return b""

    def refusal(self, id: ExchangeId, ask: Ask, body: bytes) -> Refused:
        """The refusal of a request: the nearest recording, and where it differs."""
        nearest = self._nearest(id, ask)
        if nearest is None:
            return Refused(
                ExchangeUnmatched(
                    f"the tape has no answer to {ask.key}",
                    cause=f"the tape holds no {ask.kind} exchange",
                )
            )
        name = self._name(self._recordings[nearest].id)
        difference = self._difference(nearest, ask, body)
        if difference is None:
            return Refused(
                ExchangeExhausted(
                    f"{name} matches {ask.key}; every recording of it is used",
                    hint="the program asks once more than the tape",
                )
            )
        error = ExchangeUnmatched(
            f"the tape has no answer to {ask.key}",
            cause=(
                f"nearest is {name}; first difference at {difference.path}: "
                f"tape {difference.tape}, now {difference.now}"
            ),
        )
        return Refused(error, difference)

    def _difference(self, nearest: int, ask: Ask, body: bytes) -> Difference | None:
        key, recorded = self._recordings[nearest].key, self._body_of(nearest)
        if self.level == "exchanges" and self.handed and ask.kind == "http":
            sides = (
                ComparedRequest.of(with_fixed_boundary(recorded), key),
                ComparedRequest.of(with_fixed_boundary(body), ask.key),
            )
            found = self.volatile.compare(*sides)
            if isinstance(found, Unlike):
                return found.difference
        if key != ask.key:
            return Difference("request line", key, ask.key)
        return body_difference(canonical(recorded), canonical(body))

    def _nearest(self, id: ExchangeId, ask: Ask) -> int | None:
        """The most similar recording: same request, then same key, same id, same lane, unused."""

        def likeness(number: int) -> tuple[bool, bool, bool, bool, bool, int]:
            one = self._recordings[number]
            return (
                (one.key, one.digest) == (ask.key, ask.body.digest),
                one.key == ask.key,
                one.id == id,
                one.id.lane == id.lane,
                not self._shelf.used(number),
                -abs(one.id.ordinal - id.ordinal),
            )

        alike = (number for number, one in enumerate(self._recordings) if one.id.kind == ask.kind)
        return max(alike, key=likeness, default=None)

    def _name(self, id: ExchangeId) -> str:
        lane = self._lane_names.get(id.lane) or f"{id.lane:016x}"
        return f"{lane}#{id.ordinal}"


def is_there(exchange: Exchange) -> bool:
    """Whether what was asked has been made."""
    return exchange.end is not None and exchange.end.how == "complete"


def is_rebuilt(exchange: Exchange) -> bool:
    """Whether its answer was rebuilt from a span: what it answers is never exact."""
    return exchange.ask.details.get(a.PLAYHEAD_FIDELITY) == Fidelity.SEMANTIC


def deliveries(exchanges: Iterable[Exchange]) -> Iterator[Delivery]:
    """All deliveries in ``exchanges``."""
    for exchange in exchanges:
        if exchange.delivery is not None:
            yield exchange.delivery
        yield from deliveries_of(exchange)


def _stretch(tape: IndexedTape) -> tuple[int, int]:
    """First and last time on a tape, in nanoseconds since the epoch."""
    times = array("q", (fact.time_ns for fact in tape.facts())) or array("q", (0,))
    return times[0], max(times)


def _ignore(exchange: Exchange) -> None:
    """No-op callback."""


def _undelivered(recording: Exchange) -> Exchange:
    """A recording without its deliveries: it answers as soon as it is asked."""
    parts = [replace(part, delivery=None) for part in recording.parts]
    end = None if recording.end is None else replace(recording.end, delivery=None)
    return replace(recording, head_delivery=None, parts=parts, end=end, released=None, controls=[])
