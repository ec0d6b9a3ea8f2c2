"""What is damaged is found with its run, keeps nobody else from being read, and can be deleted."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from conformance.suite.base import OnEngine
from support.tapes.batches import span_of
from support.whole_store import WholeStore

from playhead_core.errors import CorruptTape
from playhead_core.facts import Content, Fact
from playhead_receiver.storage import Batch, Finding, Query
from playhead_receiver.storage.retention import Policy, apply

SHARED = "shared " * 40 + os.urandom(400).hex()


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def instance(number: int) -> bytes:
    return bytes([100 + number]) * 16


def commit_run(store: WholeStore, number: int) -> None:
    """Three spans in frames of their own, a fact with a large body and one with a small one."""
    large = Content.of(os.urandom(300_000).hex().encode())
    for body, seq in ((large, 0), (Content.chunk(f"fact {number}".encode()), 1)):
        id = instance(number)
        fact = Fact(1, 1, "playhead.effect", trace(number), b"s" * 8, instance=id, seq=seq, body=body)
        store.commit(Batch(facts=[fact]))
    for one in range(1, 5):
        span = span_of(trace(number), one, text=f"run{number} span{one}", long=f"{SHARED} run{number}")
        store.commit(Batch([span]))


def change(store: Any, sql: str, *values: Any) -> None:
    """What no store does."""
    store._writer.run(lambda db: db.execute(sql, values) and None)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def flip(store: Any, table: str, key: str, value: int, place: float = 0.5) -> None:
    """Change one bit of a frame."""
    (data,) = store._reader.one(f"SELECT data FROM {table} WHERE {key} = ?", (value,))
    change(
        store,
        f"UPDATE {table} SET data = ? WHERE {key} = ?",
        flipped(data, int(len(data) * place)),
        value,
    )


def bundles_of(store: Any, number: int) -> list[int]:
    rows = store._reader.all("SELECT id FROM bundle WHERE trace_id = ? ORDER BY id", (trace(number),))
    return [row[0] for row in rows]


def runs_of(findings: list[Finding]) -> set[str]:
    return {run for one in findings for run in one.runs}


class Damage(OnEngine):
    @pytest.fixture
    def filled(self, store: WholeStore) -> WholeStore:
        for number in (1, 2, 3):
            commit_run(store, number)
        assert list(store.verify()) == []
        return store

    @pytest.mark.parametrize("table", ["bundle", "fact_run"])
    def test_any_bit_that_is_another_is_found(self, store: Any, table: str):
        span = span_of(trace(1), 1, text="of no size at all")
        fact = Fact(
            1, 1, "playhead.effect", trace(1), attributes={"a": "b" * 40}, instance=b"i" * 16, seq=0
        )
        store.commit(Batch([span], [fact]))
        (whole,) = store._reader.one(f"SELECT data FROM {table}")
        for at in range(5, len(whole), 7):  # a bit of the fourth byte means nothing
            change(store, f"UPDATE {table} SET data = ?", flipped(whole, at))
            assert runs_of(list(store.verify())) == {trace(1).hex()}, at
        change(store, f"UPDATE {table} SET data = ?", whole)
        assert list(store.verify()) == []

    def test_findings_say_whose_they_are(self, filled: Any):
        flip(filled, "bundle", "id", bundles_of(filled, 2)[1])
        change(
            filled,
            "DELETE FROM fact_run WHERE instance = (SELECT id FROM instance WHERE instance = ?)"
            " AND first = 1",
            instance(3),
        )
        found = list(filled.verify())
        assert runs_of(found) == {trace(2).hex(), trace(3).hex()}
        said = {(one.what, one.where, one.problem) for one in found}
        assert ("facts", instance(3).hex(), "1-1 were received and are missing") in said
        assert all(one.runs for one in found)

    def test_a_blob_that_is_gone_is_told_with_its_run(self, filled: Any):
        (digest,) = {
            one
            for (one,) in filled._reader.all(
                "SELECT digest FROM blob_use JOIN fact_run ON fact_run.position = blob_use.position"
                " JOIN instance ON instance.id = fact_run.instance WHERE instance.instance = ?",
                (instance(2),),
            )
        }
        filled._blobs.delete(digest)
        found = list(filled.verify())
        assert {one.what for one in found} == {"blob", "facts"}
        assert runs_of(found) == {trace(2).hex()}
        filled.delete([trace(2)])
        assert list(filled.verify()) == []

    @pytest.mark.parametrize("joined", [False, True])
    def test_a_damaged_run_is_deleted_and_the_store_is_whole_again(self, filled: Any, joined: bool):
        """The one that the others lean on is left alone here."""
        while joined and filled.compact(quiet_s=0):
            pass
        table, key = ("block", "id") if joined else ("bundle", "id")
        (block,) = filled._reader.one(
            f"SELECT {'block' if joined else 'id'} FROM bundle WHERE trace_id = ? ORDER BY id DESC",
            (trace(3),),
        )
        flip(filled, table, key, block)
        flip(filled, "fact_run", "position", filled._reader.one("SELECT max(position) FROM fact_run")[0])
        assert runs_of(list(filled.verify())) == {trace(3).hex()}
        with pytest.raises(CorruptTape, match="is damaged"):
            list(filled.spans(trace(3)))
        assert filled.delete([trace(3)]).runs == 1
        assert list(filled.verify()) == []
        assert len(list(filled.spans(trace(2)))) == 4

    def test_what_others_lean_on_is_damaged_and_all_that_is_goes(self, filled: Any):
        flip(filled, "bundle", "id", bundles_of(filled, 1)[0])
        hurt = runs_of(list(filled.verify()))
        assert trace(1).hex() in hurt
        filled.delete([bytes.fromhex(run) for run in sorted(hurt)])
        assert list(filled.verify()) == []

    def test_a_policy_and_the_joining_of_frames_go_past_it(self, filled: Any):
        flip(filled, "bundle", "id", bundles_of(filled, 1)[-1])
        while filled.compact(quiet_s=0):
            pass
        assert filled._reader.one("SELECT count(*) FROM block")[0] == 2
        filled.mark(trace(3), "held")
        done = apply(filled, Policy(success_s=0, failure_s=0, test_s=0), time.time_ns())
        assert done.runs == 2
        assert [run.trace_id for run in filled.runs(Query())] == [trace(3).hex()]
        assert len(list(filled.spans(trace(3)))) == 4

    def test_the_index_goes_past_a_frame_that_has_gone(self, filled: Any):
        """As where another receiver deletes it while it is read."""
        last = bundles_of(filled, 3)[-1]
        change(filled, "UPDATE bundle SET data = NULL WHERE id = ?", last)
        filled.unindex()
        while filled.index():
            pass
        assert filled.lag().bundles == 0
        assert [hit.trace_id for hit in filled.search("run3 span3")] == [trace(3).hex()]
        assert filled.search("run3 span4") == []

    def test_who_follows_goes_past_it(self, filled: Any):
        last = bundles_of(filled, 3)[-1]
        flip(filled, "bundle", "id", last)
        flip(filled, "fact_run", "position", filled._reader.one("SELECT min(position) FROM fact_run")[0])
        seen = [change.position for change in filled.changes(0)]
        (lost,) = filled._reader.one("SELECT position FROM span WHERE bundle = ?", (last,))
        assert seen == [at for at in range(2, filled.position() + 1) if at != lost]
        assert [change.position for change in filled.changes(0, 1)] == [2]
        assert list(filled.changes(lost - 1)) == []

    def test_the_search_goes_past_it_and_forgets_it(self, filled: Any):
        flip(filled, "bundle", "id", bundles_of(filled, 2)[-1])
        flip(filled, "fact_run", "position", filled._reader.one("SELECT min(position) FROM fact_run")[0])
        while filled.index():
            pass
        assert (filled.lag().bundles, filled.lag().fact_runs) == (0, 0)
        assert {hit.trace_id for hit in filled.search("run3")} == {trace(3).hex()}
        assert {hit.trace_id for hit in filled.search("run2")} == {trace(2).hex()}
        flip(filled, "bundle", "id", bundles_of(filled, 3)[-1])
        assert filled.search("span4") is not None
        filled.delete([trace(2), trace(3)])
        assert filled.search("run2") == filled.search("run3") == []

    def test_words_of_a_frame_that_was_damaged_later_go_with_it(self, filled: Any):
        while filled.index():
            pass
        flip(filled, "bundle", "id", bundles_of(filled, 3)[-1])
        filled.delete([trace(3)])
        rows = words_kept(filled)
        assert rows and not [
            row for row in rows if row >> 24 not in bundles_of(filled, 1) + bundles_of(filled, 2)
        ]


def words_kept(store: Any) -> list[int]:
    """Rows of the index of texts."""
    search = store._search
    if hasattr(search, "_asking"):
        db = search._asking()
        try:
            return [row for (row,) in db.execute("SELECT rowid FROM text_words")]
        finally:
            db.close()
    return [row for (row,) in store._reader.all("SELECT row_id FROM text_words")]
