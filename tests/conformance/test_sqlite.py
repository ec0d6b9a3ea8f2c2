"""The SQLite engine does what every engine has to do, and keeps its files to itself."""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
import zstandard
from conformance import older
from conformance.store_suite import StoreSuite
from conformance.suite.commits import Commits
from conformance.suite.custody import ManyChanges
from conformance.suite.derived_calls import DerivedCalls
from conformance.suite.listing import Listing
from conformance.suite.services import Services
from conformance.suite.summaries import Summaries
from support.tapes.batches import facts_of, span_of

from playhead_core.errors import StoreBusy, StoreUnavailable
from playhead_core.facts import Content, Fact
from playhead_receiver.storage import Batch, Query, Store, open_store, page_cursor
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sqlite.schema import VERSION


class TestSqlite(StoreSuite):
    engine = "sqlite"


class TestCustody(ManyChanges):
    engine = "sqlite"
    trials = 1000


class SummedUp:
    """With lists that are read from summaries."""

    engine = "sqlite"

    @pytest.fixture
    def store(self, place: Path) -> Iterator[Store]:
        opened: Any = open_store(place)

        def and_sum_up(change: Callable[..., Any]) -> Callable[..., Any]:
            def changed(*arguments: Any) -> Any:
                done = change(*arguments)
                while opened.sum_up():
                    pass
                return done

            return changed

        opened.commit, opened.store_derived = and_sum_up(opened.commit), and_sum_up(opened.store_derived)
        yield opened
        if not opened._reader._closed:
            assert not list(opened._reader.all("SELECT 1 FROM run WHERE stale OR summary IS NULL"))
            assert [found for found in opened.verify() if found.what == "run"] == []
        opened.close()


class TestSummedUp(SummedUp, Commits, Summaries, Listing, Services, DerivedCalls):
    """What lists show."""


@pytest.mark.acceptance
class TestAllSummedUp(SummedUp, StoreSuite):
    """All of it again."""


def test_only_the_owner_may_read(tmp_path: Path):
    old = os.umask(0)
    try:
        store = open_store(tmp_path / "data")
        large = Fact(1, 1, "playhead.effect", body=Content.of(bytes(600_000)), instance=b"i" * 16, seq=0)
        store.commit(Batch(facts=[large]))
    finally:
        os.umask(old)
    found = {
        str(path.relative_to(tmp_path / "data")): stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "data").rglob("*")
    }
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    files = {name: mode for name, mode in found.items() if (tmp_path / "data" / name).is_file()}
    assert set(files.values()) == {0o600}
    assert {name for name in files if "/" not in name} == {
        "receiver.lock",
        "store.sqlite",
        "store.sqlite-shm",
        "store.sqlite-wal",
    }
    assert {mode for name, mode in found.items() if name not in files} == {0o700}
    store.close()


def test_large_bodies_lie_beside_the_database_once(tmp_path: Path):
    store = open_store(tmp_path)
    body = Content.of(os.urandom(1024 * 1024))
    for instance in (b"1" * 16, b"2" * 16):
        fact = Fact(1, 1, "playhead.exchange.request", body=body, instance=instance, seq=0)
        store.commit(Batch(facts=[fact]))
        assert list(store.tape(instance).facts()) == [fact]
        assert store.tape(instance).read(Content(body.digest, body.size)) == body.inline
    files = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in files] == [1024 * 1024]
    store.close()
    assert (tmp_path / "store.sqlite").stat().st_size < 300_000


def test_a_commit_is_synced(tmp_path: Path):
    store: Any = open_store(tmp_path)
    connection = store._writer._backend.db
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2  # FULL
    store.close()


def test_a_full_disk_refuses_and_takes_again_when_there_is_room(tmp_path: Path):
    store: Any = open_store(tmp_path)
    connection = store._writer._backend.db
    store.commit(Batch([span_of(b"i" * 16, 1)], facts_of(b"i" * 16, range(3))))
    connection.pragma("max_page_count", connection.pragma("page_count") + 2)
    large = Batch([span_of(b"j" * 16, 1, text=os.urandom(40_000).hex())], facts_of(b"i" * 16, range(6)))
    with pytest.raises(StoreUnavailable) as caught:
        store.commit(large)
    assert "full" in caught.value.cause
    assert store.position() == 4
    assert [fact.seq for fact in store.tape(b"i" * 16).facts()] == [0, 1, 2]
    small = store.commit(Batch(facts=facts_of(b"i" * 16, range(4))))
    assert (small.facts_new, small.position) == (1, 5)
    connection.pragma("max_page_count", 1 << 30)
    again = store.commit(large)
    assert (again.spans_new, again.facts_new) == (1, 2)
    assert [run.name for run in store.runs(Query())] == ["refund-1", "run-1"]
    assert [fact.seq for fact in store.tape(b"i" * 16).facts()] == list(range(6))
    store.close()


def test_one_batch_that_cannot_be_written_does_not_fail_those_beside_it(tmp_path: Path):
    store: Any = open_store(tmp_path)
    connection = store._writer._backend.db
    connection.pragma("max_page_count", connection.pragma("page_count") + 30)
    outcomes: dict[int, object] = {}
    start = threading.Barrier(9)

    def commit(number: int) -> None:
        text = os.urandom(200_000).hex() if number == 4 else "small"
        start.wait()
        try:
            outcomes[number] = store.commit(Batch([span_of(b"i" * 16, number, text=text)])).spans_new
        except StoreUnavailable:
            outcomes[number] = "refused"

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(1, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {number: "refused" if number == 4 else 1 for number in range(1, 10)}
    store.close()


def test_a_blob_folder_that_cannot_be_written_refuses(tmp_path: Path):
    store = open_store(tmp_path)
    (tmp_path / "blobs").write_text("in the way")
    large = Fact(1, 1, "playhead.effect", body=Content.of(bytes(600_000)), instance=b"i" * 16, seq=0)
    with pytest.raises(StoreUnavailable, match="the blobs of"):
        store.commit(Batch(facts=[large]))
    (tmp_path / "blobs").unlink()
    assert store.commit(Batch(facts=[large])).facts_new == 1
    store.close()


def test_a_second_writer_is_refused_by_name(tmp_path: Path):
    store = open_store(tmp_path)
    with pytest.raises(StoreBusy, match=f"process {os.getpid()} writes to"):
        open_store(tmp_path)
    store.close()
    open_store(tmp_path).close()


def test_a_newer_schema_is_refused(tmp_path: Path):
    open_store(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / "store.sqlite"))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(StoreUnavailable, match="schema 99"):
        open_store(tmp_path)
    reader = open_store(tmp_path, read_only=True)
    with pytest.raises(StoreUnavailable, match="schema 99"):
        list(reader.runs(Query()))
    reader.close()


def test_there_is_a_store_of_every_older_version():
    assert older.versions(".sqlite.zst") == list(range(1, VERSION))


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_store_of_an_older_version_is_brought_to_this_one(
    tmp_path: Path, version: int, read_only: bool
):
    kept = older.STORES / f"store-{version}.sqlite.zst"
    (tmp_path / "store.sqlite").write_bytes(zstandard.decompress(kept.read_bytes()))
    older.is_brought_to_this_version(
        open_store(tmp_path, read_only=read_only), lambda: open_store(tmp_path), version > 11
    )


def test_a_store_of_version_8_learns_which_blobs_it_needs(tmp_path: Path):
    store = open_store(tmp_path)
    body = Content.of(os.urandom(600_000))
    needed = Fact(1, 1, "playhead.state", body=body, instance=b"i" * 16, seq=0, trace_id=b"i" * 16)
    store.commit(Batch([span_of(b"i" * 16, 1)], [needed]))
    store.close()
    with closing(apsw.Connection(str(tmp_path / "store.sqlite"))) as connection:
        for table in ("blob_use", "aged", "link", "tombstone", "log"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DROP INDEX span_bundle; DROP INDEX run_cost")
        connection.execute("ALTER TABLE counter DROP COLUMN looked")
        connection.pragma("user_version", 8)
    store = open_store(tmp_path)
    assert list(store.verify()) == []
    assert store.delete([b"i" * 16]).blobs == 1
    store.close()


def test_the_dearest_runs_come_from_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """To sort all runs for each page would take longer with every run."""
    asked: dict[str, Sequence[Any]] = {}
    ask = SqlReader.all

    def noted(reader: SqlReader, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        asked[sql] = values
        return ask(reader, sql, values)

    monkeypatch.setattr(SqlReader, "all", noted)
    with closing(open_store(tmp_path)) as store:
        store.commit(Batch([span_of(b"i" * 16, 1)]))
        first = next(iter(store.runs(Query(sort="cost"))))
        list(store.runs(Query(sort="cost", after=page_cursor(first, Query(sort="cost")))))
    lists = {sql: values for sql, values in asked.items() if "ORDER BY cost" in sql}
    assert len(lists) == 2
    with closing(apsw.Connection(str(tmp_path / "store.sqlite"))) as db:
        for sql, values in lists.items():
            plan = " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", tuple(values)))
            assert "USING INDEX run_cost" in plan, (sql, plan)
            assert "TEMP B-TREE" not in plan, (sql, plan)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path):
    (tmp_path / "store.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        open_store(tmp_path)
    (tmp_path / "store.sqlite").unlink()
    open_store(tmp_path).close()


def test_bytes_per_step_are_flat(tmp_path: Path):
    """A history that is resent with every step is stored once: references, not copies."""
    sizes: list[int] = []
    for steps in (25, 100):
        store = open_store(tmp_path / str(steps))
        history = b""
        base: Content | None = None
        for step in range(steps):
            tail = os.urandom(1500).hex().encode()
            history += tail
            whole = Content.of(history)
            body = whole
            if base is not None:
                body = Content(whole.digest, whole.size, tail, base.digest, base.size)
            fact = Fact(step, 1, "playhead.exchange.request", body=body, instance=b"i" * 16, seq=step)
            store.commit(Batch([span_of(b"i" * 16, step + 1, text="x" * 500)], [fact]))
            base = whole
        assert base is not None
        assert store.tape(b"i" * 16).read(Content(base.digest, base.size)) == history
        store.close()
        sizes.append((tmp_path / str(steps) / "store.sqlite").stat().st_size)
    per_step = (sizes[1] - sizes[0]) / 75
    assert 1500 < per_step < 3500
