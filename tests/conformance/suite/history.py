"""What a service did for no request ages out; its requests, its boot and what they rest on stay."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from itertools import cycle, groupby, islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conformance.engines import ENGINES
from conformance.suite.base import OnEngine
from support.tapes.batches import span_of
from support.tapes.handmade import carried_start
from support.whole_store import WholeStore

from playhead_core.facts import Content, ExchangeId, Fact, digest_of
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_core.tape.slices import slice_of
from playhead_instrumentation.recorder.bodies import Bodies
from playhead_receiver.storage import Batch, Query, Store
from playhead_receiver.storage.api.retention import History
from playhead_receiver.storage.sql.history import measuring
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e

SERVICE, PROCESS = b"\x51" * 16, b"\x52" * 16
MAIN, WORKER = 7, 8
HOUR_NS = 3600 * 10**9
HOUR = History(3600.0, 1 << 40)


def trace_of(number: int) -> bytes:
    return b"request" + number.to_bytes(9, "big")


def root_of(number: int) -> int:
    return (1 << 63) + 10 * number


class Service:
    """The tape of a process that serves, and does other things between its requests."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.at_ns = 10**18
        self._asked = 0
        self.add(MAIN, e.PLAYHEAD_PROCESS_START, PROCESS, attributes={a.PLAYHEAD_RUN_MODE: "record"})
        self.declare(MAIN)
        self.read(b"boot")

    def add(self, lane: int, name: str, trace: bytes = b"", **more: Any) -> Fact:
        seq = len(self.facts)
        self.facts.append(Fact(self.at_ns, lane, name, trace, instance=SERVICE, seq=seq, **more))
        return self.facts[-1]

    def declare(self, lane: int, parent: int | None = None) -> None:
        above = "" if parent is None else f"{parent:016x}"
        names = {a.PLAYHEAD_LANE_NAME: f"lane {lane}", a.PLAYHEAD_LANE_PARENT: above}
        self.add(lane, e.PLAYHEAD_LANE, attributes=names)

    def read(self, data: bytes, lane: int = MAIN) -> Fact:
        """Something that the clock or the like said."""
        return self.add(lane, e.PLAYHEAD_READ, body=Content(b"", len(data), data))

    def ask(self, body: Content, lane: int = WORKER, trace: bytes = PROCESS) -> Fact:
        """A request that it makes, and the answer."""
        self._asked += 1
        id = ExchangeId(lane, "http", self._asked)
        key = {a.PLAYHEAD_ASK_KEY: "POST http://x/"}
        asked = self.add(
            lane, e.PLAYHEAD_EXCHANGE_REQUEST, trace, exchange=id, attributes=key, body=body
        )
        self.add(lane, e.PLAYHEAD_EXCHANGE_DATA, trace, exchange=id, body=Content.chunk(b"answer"))
        self.add(
            lane,
            e.PLAYHEAD_EXCHANGE_END,
            trace,
            exchange=id,
            attributes={a.PLAYHEAD_END_HOW: "complete"},
        )
        return asked

    def request(self, number: int, body: Content | None = None) -> None:
        """One that comes to it, for which it reads, asks, and goes on in a lane of its own."""
        root, trace = root_of(number), trace_of(number)
        id = ExchangeId(root, "inbound", 0)
        self.declare(root)
        asked = {a.PLAYHEAD_EXCHANGE_DIRECTION: "in", a.PLAYHEAD_ASK_KEY: "GET /"}
        self.add(root, e.PLAYHEAD_EXCHANGE_REQUEST, trace, exchange=id, attributes=asked)
        self.declare(root + 1, root)
        self.read(b"meanwhile", MAIN)
        self.read(b"read by %d" % number, root + 1)
        if body is not None:
            self.ask(body, root + 1, trace)
        self.add(MAIN, e.PLAYHEAD_EFFECT, trace, body=Content(b"", 4, b"done"))
        self.add(
            root,
            e.PLAYHEAD_EXCHANGE_END,
            trace,
            exchange=id,
            attributes={a.PLAYHEAD_END_HOW: "complete"},
        )

    def idle(self, hours: float = 2.0) -> None:
        """Time passes, and something is said then."""
        self.at_ns += round(hours * HOUR_NS)
        self.read(b"later")


def commit(store: Store, facts: Iterable[Fact], *sizes: int) -> None:
    """Commit stretches of so many facts, of one time each."""
    size = cycle(sizes or (5, 1, 9, 2, 3))
    for _, of_a_time in groupby(facts, key=lambda fact: fact.time_ns):
        while some := list(islice(of_a_time, next(size))):
            store.commit(Batch(facts=some))


def age_out(store: WholeStore, kept: History = HOUR) -> None:
    while store.age_out(kept):
        pass


def left(store: Store) -> list[int]:
    return [fact.seq for fact in store.tape(SERVICE).facts()]


def numbers(ranges: Iterable[tuple[int, int]]) -> list[int]:
    return [number for first, last in ranges for number in range(first, last + 1)]


def same_runs(store: Store, service: Service, *requests: int) -> None:
    """The runs of these requests are what they were, to the byte."""
    whole = MemoryTape(service.facts)
    for number in requests:
        part = store.tape_of(SERVICE, trace_of(number))
        sliced, wanted = (slice_of(tape, trace_of(number)) for tape in (part, whole))
        assert list(sliced.facts()) == list(wanted.facts())
        for fact in wanted.facts():
            if fact.body is not None and fact.body.digest:
                assert sliced.read(fact.body) == wanted.read(fact.body)
        assert store.resolve(trace_of(number).hex()).missing == []


class Ageing(OnEngine):
    def served(self, rounds: int = 30) -> Service:
        service = Service()
        for number in range(rounds):
            service.request(number)
            service.declare(WORKER + 100 + number)
            for _ in range(20):
                service.read(b"%d" % number, WORKER + 100 + number)
        service.idle()
        return service

    def test_what_is_old_and_of_no_request_goes_and_is_declared(self, store: WholeStore):
        service = self.served()
        commit(store, service.facts)
        age_out(store)
        here = left(store)
        lanes = {root_of(number) + place for number in range(30) for place in (0, 1)}
        first = 4  # the first request: what is before it is the boot
        wanted = [
            fact.seq
            for fact in service.facts
            if fact.seq <= first or fact.lane in lanes or fact.trace_id[:7] == b"request"
        ]
        assert here == [*wanted, service.facts[-1].seq]
        tape = store.tape(SERVICE)
        assert numbers(tape.aged()) == sorted(set(range(len(service.facts))) - set(here))
        assert tape.gaps() == []
        assert list(store.verify()) == []
        same_runs(store, service, *range(30))
        assert store.age_out(HOUR) == 0

    def test_what_has_aged_out_is_not_taken_in_again(self, store: WholeStore):
        service = self.served()
        commit(store, service.facts)
        age_out(store)
        here, position = left(store), store.position()
        assert store.commit(Batch(facts=service.facts)).facts_new == 0
        assert (left(store), store.position()) == (here, position)

    def test_what_is_not_old_stays_until_it_is_too_much(self, store: WholeStore):
        service = Service()
        service.request(0)
        for _ in range(300):
            service.read(os.urandom(1000))
        commit(store, service.facts, 10)
        age_out(store, History(1e9, 400_000))
        assert left(store) == list(range(len(service.facts)))
        age_out(store, History(1e9, 100_000))
        here = left(store)
        assert here[:3] == [0, 1, 2]
        assert here[-1] == len(service.facts) - 1
        read = [fact for fact in store.tape(SERVICE).facts() if fact.body and fact.body.size == 1000]
        assert 60 <= len(read) <= 100
        assert [fact.seq for fact in read] == list(range(read[0].seq, read[-1].seq + 1))
        assert list(store.verify()) == []

    def test_a_body_that_later_ones_go_on_from_stays_with_what_it_rests_on(self, store: WholeStore):
        service = Service()
        service.request(0)
        service.declare(WORKER)
        text = os.urandom(3000)
        first = Content.of(text)
        second = Content(digest_of(text + b"2"), 3001, b"2", first.digest, 3000)
        alone = Content.of(os.urandom(3000))
        one, other = service.ask(first), service.ask(alone)
        two = service.ask(second)
        service.at_ns += HOUR_NS
        # So much that nothing that comes can rest on what was before.
        for _ in range(18):
            service.ask(Content.of(os.urandom(1 << 20)))
        service.idle()
        third = Content(digest_of(text + b"23"), 3002, b"3", second.digest, 3001)
        service.request(1, third)
        commit(store, service.facts, 4)
        age_out(store)
        here = set(left(store))
        assert {one.seq, two.seq} < here
        assert not {other.seq, one.seq + 1, two.seq + 1} & here
        same_runs(store, service, 0, 1)
        assert list(store.verify()) == []

    def test_a_body_on_which_one_may_still_rest_stays(self, store: WholeStore):
        service = Service()
        service.request(0)
        large = os.urandom(700_000)
        asked = [service.ask(Content.of(large)), service.ask(Content.of(os.urandom(2000)))]
        service.idle()
        commit(store, service.facts)
        age_out(store)
        assert {fact.seq for fact in asked} < set(left(store))
        after = Content(digest_of(large + b"!"), len(large) + 1, b"!", digest_of(large), len(large))
        before = len(service.facts)
        service.request(1, after)
        commit(store, service.facts[before:])
        same_runs(store, service, 1)

    @pytest.mark.parametrize(
        "seed", [0, *(pytest.param(n, marks=pytest.mark.acceptance) for n in (1, 2, 3))]
    )
    def test_whatever_bodies_go_on_from_can_be_read(
        self, store: WholeStore, monkeypatch: pytest.MonkeyPatch, seed: int
    ):
        """Talks of the service and of its requests, written as the recorder writes them."""
        monkeypatch.setattr(measuring, "RECENT_BYTES", 60_000)
        bodies = Bodies(lambda body, _: (body, 0), kept_bytes=30_000)
        chance, service = random.Random(seed), Service()
        prompts = [chance.randbytes(1500) for _ in range(3)]
        talks = [bytearray(prompt) for prompt in prompts]
        service.request(0)
        committed, asked, gone = 0, 1, set[int]()
        for _ in range(25):
            for _ in range(chance.randrange(12)):
                which = chance.randrange(len(talks))
                if chance.random() < 0.1 or len(talks[which]) > 6000:
                    talks[which] = bytearray(prompts[which])
                talks[which] += chance.randbytes(chance.choice((20, 200, 900)))
                body = bodies.written(bytes(talks[which]))[1]
                if chance.random() < 0.3:
                    service.request(asked, body)
                    asked += 1
                else:
                    service.ask(body, MAIN if chance.random() < 0.5 else WORKER)
            service.at_ns += round(chance.random() * HOUR_NS)
            service.read(b"tick")
            commit(store, service.facts[committed:])
            committed = len(service.facts)
            age_out(store, History(chance.choice((600.0, 3600.0)), 1 << 40))
            gone.update(numbers(store.tape(SERVICE).aged()))
        assert len(gone) > 150
        same_runs(store, service, *range(asked))
        assert list(store.verify()) == []

    def test_files_and_states_are_told_once_and_stay(self, store: WholeStore):
        service = Service()
        service.request(0)
        told = service.add(MAIN, e.PLAYHEAD_READ, body=Content.of(b"what a file holds"))
        again = service.add(MAIN, e.PLAYHEAD_READ, body=Content.of(b"what a file holds"))
        service.idle()
        commit(store, service.facts)
        age_out(store)
        assert told.seq in left(store)
        assert again.seq not in left(store)

    def test_a_large_body_that_ages_out_leaves_no_blob(self, store: WholeStore, place: Path):
        service = Service()
        service.request(0)
        body = Content.chunk(os.urandom(600_000))
        service.add(MAIN, e.PLAYHEAD_EXCHANGE_DATA, exchange=ExchangeId(MAIN, "http", 0), body=body)
        service.idle()
        commit(store, service.facts)
        blobs: Any = getattr(store, "_blobs")  # noqa: B009
        assert blobs.has(digest_of(body.inline or b""))
        age_out(store)
        assert not blobs.has(digest_of(body.inline or b""))
        assert list(store.verify()) == []

    def test_names_of_lanes_that_go_on_and_spans_that_have_not_come_stay(self, store: WholeStore):
        service = Service()
        service.request(0)
        service.declare(WORKER)
        service.declare(WORKER + 1, WORKER)
        service.declare(WORKER + 2, WORKER)
        begun = {a.PLAYHEAD_SPAN_NAME: "chat"}
        open_, over = (
            service.add(WORKER, e.PLAYHEAD_SPAN_START, PROCESS, span_id=one, attributes=begun)
            for one in (bytes(7) + b"\x01", bytes(7) + b"\x02")
        )
        service.idle()
        service.read(b"goes on", WORKER + 1)
        commit(store, service.facts)
        store.commit(Batch([span_of(PROCESS, 2, instance=SERVICE)]))
        age_out(store)
        declared = [fact.lane for fact in store.tape(SERVICE).facts() if fact.name == e.PLAYHEAD_LANE]
        assert {MAIN, WORKER, WORKER + 1} <= set(declared)
        assert WORKER + 2 not in declared
        assert open_.seq in left(store)
        assert over.seq not in left(store)

    def test_an_ask_stays_while_a_span_that_it_begins_has_not_come(self, store: WholeStore):
        service = Service()
        service.request(0)
        ids = [number.to_bytes(8) for number in (1, 2, 3)]
        open_, over = (
            service.add(
                MAIN,
                e.PLAYHEAD_EXCHANGE_REQUEST,
                PROCESS,
                span_id=id,
                exchange=ExchangeId(MAIN, "http", number),
                attributes={
                    a.PLAYHEAD_ASK_KEY: "GET http://peer/",
                    a.PLAYHEAD_ASK_SPANS: [
                        carried_start(int.from_bytes(one), 0, "GET", 3, service.at_ns, {})
                        for one in begun
                    ],
                },
            )
            for number, id, begun in ((7, ids[0], [ids[0], ids[1]]), (8, ids[2], [ids[2]]))
        )
        service.idle()
        commit(store, service.facts)
        store.commit(Batch([span_of(PROCESS, one, instance=SERVICE) for one in (1, 3)]))
        age_out(store)
        assert open_.seq in left(store)
        assert over.seq not in left(store)

    def test_what_a_deleted_request_has_left_goes(self, store: WholeStore, place: Path):
        service = self.served()
        commit(store, service.facts)
        store.delete([trace_of(number) for number in range(25)])
        husks = len(left(store))
        age_out(store)
        assert len(left(store)) < husks - 400
        assert len(left(store)) < 70
        same_runs(store, service, *range(25, 30))
        assert list(store.verify()) == []
        assert store.tape(SERVICE).fact(4) is not None  # it ends the boot

    def test_a_store_that_is_opened_anew_goes_on(self, store: WholeStore, place: Path):
        service = self.served()
        half = len(service.facts) // 2
        commit(store, service.facts[:half])
        age_out(store)
        store.close()
        again = ENGINES[self.engine].writer(place)
        commit(again, service.facts[half:])
        age_out(again)
        assert len(left(again)) < 260
        same_runs(again, service, *range(30))
        again.delete([bytes.fromhex(run.trace_id) for run in again.runs(Query(mode=None))])
        assert left(again) == []
        assert again.tape(SERVICE).aged() == []
        assert list(again.verify()) == []
        again.close()

    @pytest.mark.parametrize("late", [True, False])
    def test_what_is_not_told_apart_stays(self, store: WholeStore, late: bool):
        service = Service()
        if late:  # what came before its first request came later
            service.request(0)
            service.idle(0)
        before = len(service.facts)
        for _ in range(20):
            service.read(b"x")
        service.idle()
        commit(store, service.facts[before:] if late else service.facts)
        commit(store, service.facts[:before])
        age_out(store)
        assert left(store) == list(range(len(service.facts)))

    def test_the_own_run_says_what_has_aged_out(self, store: WholeStore):
        service = self.served()
        commit(store, service.facts)
        age_out(store)
        run = Run.load(store, PROCESS.hex())
        assert {gap.reason for gap in run.gaps} == {"aged out"}
        assert run.lost == []
        own = [fact for fact in service.facts if fact.lane < 1 << 63]
        counted = sum(gap.last - gap.first + 1 for gap in run.gaps)
        facts = [fact for fact in run.tape.facts() if fact.name != e.PLAYHEAD_GAP]
        assert counted + len(facts) == len(own)
        assert run.aged_out == counted
        assert store.resolve(PROCESS.hex()).missing == []

    def test_forwarding_and_search_go_past_what_has_aged_out(self, store: WholeStore):
        service = Service()
        service.request(0)
        gone = service.ask(Content.of(b"zebra " * 20))
        service.idle()
        service.request(1, Content.of(b"giraffe " * 20))
        commit(store, service.facts, 7)
        while store.index():
            pass
        assert store.search("zebra") and store.search("giraffe")
        places = {
            change.item.seq: change.position
            for change in store.changes(0)
            if isinstance(change.item, Fact)
        }
        age_out(store)
        store.index()
        assert not store.search("zebra")
        assert [hit.trace_id for hit in store.search("giraffe")] == [trace_of(1).hex()]
        after = {
            change.item.seq: change.position
            for change in store.changes(0)
            if isinstance(change.item, Fact)
        }
        assert gone.seq not in after
        assert after == {seq: places[seq] for seq in left(store)}
        assert msgspec.structs.asdict(store.lag()) == {"bundles": 0, "fact_runs": 0}
