"""Who changes stored facts and leaves the chain as it is, is found out: each fact by its number."""

from __future__ import annotations

import os
import random
import threading
from typing import Any

import pytest
from conformance.suite.base import OnEngine, batch_of, recorded_run
from conformance.suite.history import HOUR, SERVICE, Service, commit
from support.tapes import serving, tampering
from support.tapes.batches import facts_of, span_of
from support.tapes.handmade import INSTANCE, TRACE
from support.tapes.serving import service_facts, trace_of
from support.whole_store import WholeStore

from playhead_core.facts import Content, Fact
from playhead_core.integrity import Link, What, fact_digest, statement_of
from playhead_core.integrity.chain_check import ChainCheck
from playhead_core.integrity.tombstones import Why
from playhead_receiver.storage import Batch, Finding
from playhead_receiver.storage.sql.tables.integrity import links_of
from playhead_receiver.storage.writing.prepare import bare_run, pack_bare
from playhead_semconv import events as e

LARGE = Content.chunk(os.urandom(600_000))
STREAM, WIDE = b"s" * 16, b"w" * 16


def change(store: Any, sql: str, *values: Any) -> None:
    """What no store does."""
    store._writer.run(lambda db: db.execute(sql, values) and None)


def chain_of(store: Any, instance: bytes) -> list[Link]:
    with store._reader.connection() as db:
        row = db.execute("SELECT id FROM instance WHERE instance = ?", (instance,)).get
        return list(links_of(db, row, instance))


def chained(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.what == "chain"]


def names(findings: list[Finding], instance: bytes, seq: int) -> bool:
    """Whether one of them is about this fact."""
    for one in chained(findings):
        name, _, numbers = one.where.partition(" ")
        first, _, last = numbers.partition("-")
        if name == instance.hex() and numbers and int(first) <= seq <= int(last or first):
            return True
    return False


def fill(store: WholeStore) -> None:
    """A run, an endless stream in windows of all sizes that come as they like, a service, a blob."""
    chance = random.Random(5)
    store.commit(batch_of(recorded_run()))
    facts, windows, at = facts_of(STREAM, range(120)), list[list[Fact]](), 0
    while at < len(facts):
        size = chance.randrange(1, 12)
        windows.append(facts[max(0, at - chance.randrange(3)) : at + size])
        at += size
    chance.shuffle(windows)
    for window in windows:
        store.commit(Batch(facts=window))
    for some in (service_facts(6)[:20], service_facts(6)[20:]):
        store.commit(Batch(facts=some))
    store.commit(Batch(facts=[Fact(1, 1, e.PLAYHEAD_EFFECT, WIDE, body=LARGE, instance=WIDE, seq=0)]))


def tamper(store: Any, chance: random.Random) -> tuple[bytes, tampering.Tampered, tuple[Any, ...]]:
    """Rewrite a frame as the store itself would; what it was."""
    rows = store._reader.all(
        "SELECT position, fact_run.instance, first, last, data, blobs, instance.instance FROM fact_run"
        " JOIN instance ON instance.id = fact_run.instance ORDER BY position"
    )
    position, row, first, last, data, blobs, instance = chance.choice(rows)
    facts = bare_run(data)
    done = chance.choice(tampering.WAYS)(facts, chance)
    if done.facts:
        packed, left = pack_bare(done.facts, blobs)
        numbers = [fact.seq for fact in done.facts]
        change(
            store,
            "UPDATE fact_run SET data = ?, blobs = ?, first = ?, last = ? WHERE position = ?",
            *(packed, left, min(numbers), max(numbers), position),
        )
    else:
        change(store, "DELETE FROM fact_run WHERE position = ?", position)
    return instance, done, (position, row, first, last, data, blobs)


def put_back(store: Any, row: tuple[Any, ...]) -> None:
    change(store, "DELETE FROM fact_run WHERE position = ?", row[0])
    change(store, "INSERT INTO fact_run VALUES (?, ?, ?, ?, ?, ?)", *row)


def trials(store: WholeStore, count: int, seed: int) -> dict[str, int]:
    """Tamper so many times, each time find it; how often in which way."""
    fill(store)
    chance, done = random.Random(seed), dict[str, int]()
    assert list(store.verify()) == []
    for number in range(count):
        instance, tampered, row = tamper(store, chance)
        found = list(store.verify())
        for seq in tampered.numbers:
            assert names(found, instance, seq), (number, tampered.how, seq, found)
        assert all(one.runs for one in chained(found))
        put_back(store, row)
        done[tampered.how] = done.get(tampered.how, 0) + 1
    assert list(store.verify()) == []
    return done


class Custody(OnEngine):
    def test_each_of_forty_changes_is_named(self, store: WholeStore):
        assert sum(trials(store, 40, seed=1).values()) == 40

    def test_a_link_covers_what_came_in_one_commit(self, store: WholeStore):
        for some in (range(4), range(2, 9), range(20, 22), range(30)):
            store.commit(Batch(facts=facts_of(STREAM, some)))
        account = ChainCheck.of(STREAM, chain_of(store, STREAM))
        assert (account.links, account.covered) == (5, 30)
        assert [account.expected(fact.seq) for fact in facts_of(STREAM, range(30))] == [
            fact_digest(fact) for fact in facts_of(STREAM, range(30))
        ]

    def test_a_link_is_never_changed_by_what_comes_later(self, store: WholeStore):
        heads: list[bytes] = []
        for some in (range(5, 9), range(2), range(40, 50), range(2, 40)):
            store.commit(Batch(facts=facts_of(STREAM, some)))
            heads.append(chain_of(store, STREAM)[-1].link)
        links = [one.link for one in chain_of(store, STREAM)]
        assert [links.index(head) for head in heads] == [0, 1, 2, 4]

    def test_long_stretches_have_several_links(self, store: WholeStore):
        store.commit(Batch(facts=facts_of(STREAM, range(10_000))))
        assert len(chain_of(store, STREAM)) == 3
        assert list(store.verify()) == []

    def test_what_several_senders_bring_at_once_is_one_chain(self, store: WholeStore):
        start = threading.Barrier(4)

        def send(number: int) -> None:
            start.wait()
            for at in range(0, 200, 10):
                store.commit(Batch(facts=facts_of(STREAM, range(at + number, at + number + 10))))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ChainCheck.of(STREAM, chain_of(store, STREAM)).covered == 203
        assert list(store.verify()) == []

    def test_a_link_that_is_another_is_told(self, store: Any):
        for at in range(3):
            store.commit(Batch(facts=facts_of(STREAM, range(at * 2, at * 2 + 2))))
        change(store, "UPDATE link SET link = ? WHERE number = 1", bytes(32))
        said = [one.problem for one in chained(list(store.verify()))]
        assert said == [
            "link 2 does not follow from the previous one",
            "link 3 does not follow from the previous one",
        ]
        change(store, "DELETE FROM link")
        assert chained(list(store.verify()))[0].problem == "has facts but no chain"

    def test_a_blob_with_other_bytes_is_told(self, store: Any):
        fill(store)
        other = store._blobs.put(os.urandom(600_000))
        (blobs,) = store._reader.one("SELECT blobs FROM fact_run WHERE blobs IS NOT NULL")
        (old,) = store._reader.one("SELECT digest FROM blob_use")
        change(store, "UPDATE fact_run SET blobs = ? WHERE blobs IS NOT NULL", blobs.replace(old, other))
        change(store, "UPDATE blob_use SET digest = ?", other)
        assert [(one.where, one.problem) for one in store.verify()] == [
            (f"{WIDE.hex()} 0", "was replaced")
        ]

    def test_what_deleted_requests_leave_is_accounted_for(self, store: Any):
        store.commit(Batch(facts=service_facts(5)))
        store.delete([trace_of(1)])
        assert list(store.verify()) == []
        last = chain_of(store, serving.INSTANCE)[-1]
        account = ChainCheck.of(serving.INSTANCE, chain_of(store, serving.INSTANCE))
        assert account.said[-1].what == What.EMPTIED and last.digests
        position, data = store._reader.one("SELECT position, data FROM fact_run")
        facts = bare_run(data)
        at = next(fact.seq for fact in facts if account.expected(fact.seq) in last.digests)
        kept = [fact for fact in facts if fact.seq != at]
        packed, _ = pack_bare(kept, None)
        change(store, "UPDATE fact_run SET data = ? WHERE position = ?", packed, position)
        assert names(list(store.verify()), serving.INSTANCE, at)

    def test_what_has_aged_out_is_accounted_for(self, store: Any):
        service = Service()
        service.request(0)
        for number in range(20):
            service.idle(0.5)
            service.idle(0.5)
            service.request(number + 1)
        commit(store, service.facts)
        while store.age_out(HOUR):
            pass
        service.request(30)
        store.commit(Batch(facts=service.facts))
        account = ChainCheck.of(SERVICE, chain_of(store, SERVICE))
        assert {said.what for said in account.said} == {What.AGED}
        assert account.covered == len(service.facts)
        assert list(store.verify()) == []
        links = chain_of(store, SERVICE)
        gone = [one for one in links if statement_of(one).what == What.CAME and not one.digests]
        assert gone and len(gone) < account.links

    def test_a_deleted_run_has_no_chain_any_more(self, store: Any):
        store.commit(batch_of(recorded_run()))
        assert chain_of(store, INSTANCE)
        head = chain_of(store, INSTANCE)[-1]
        store.delete([TRACE], "bob")
        assert store._reader.one("SELECT count(*) FROM link")[0] == 0
        (left,) = store.tombstones()
        assert (left.why, left.by, left.runs) == (Why.DELETED, "bob", [(TRACE, "refund-1")])
        assert (left.facts, left.chains) == (len(recorded_run().facts), [(INSTANCE, 1, head.link)])
        store.commit(batch_of(recorded_run()))
        assert list(store.verify()) == []

    def test_a_tombstone_that_is_another_is_told(self, store: Any):
        for number in range(4):
            store.commit(Batch([span_of(bytes([number + 1]) * 16, 1)]))
            store.delete([bytes([number + 1]) * 16], "bob")
        store.delete([b"nobody knows it "])
        assert [one.by for one in store.tombstones()] == ["bob"] * 4
        assert list(store.verify()) == []
        change(store, "DELETE FROM tombstone WHERE number = 2")
        change(store, "UPDATE tombstone SET said = ? WHERE number = 4", b"\xc1")
        found = [(one.what, one.where) for one in store.verify()]
        assert found == [("tombstone", "2"), ("tombstone", "3"), ("tombstone", "3")]


@pytest.mark.acceptance
class ManyChanges(OnEngine):
    trials: int

    @pytest.mark.timeout(1800)
    def test_each_of_many_changes_is_named(self, store: WholeStore):
        done = trials(store, self.trials, seed=2)
        print(f"{sum(done.values())} of {self.trials} named: {done}")
        assert len(done) == len(tampering.WAYS)
