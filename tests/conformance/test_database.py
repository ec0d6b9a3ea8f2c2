"""A database as those who run it meet it: URLs, rights, versions, several receivers, plans, its end."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
from conformance.engines import Postgres
from support.servers.postgres import PostgresServer
from support.starting.running import until
from support.tapes.batches import facts_of, span_of
from support.whole_store import WholeStore

from playhead_core.errors import ConfigurationError, StoreError, StoreUnavailable
from playhead_receiver.config.configuration import Addresses, Configuration, Storage
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Query, open_store
from playhead_receiver.storage.postgres import engine, reader, schema, search
from playhead_receiver.storage.retention import Policy, apply
from playhead_receiver.storage.runs.naming import printable_url, split_schema, tenant_url

ENGINE = Postgres()
SECRET = "s3cr3t"

pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[WholeStore]:
    with closing(ENGINE.writer(tmp_path)) as opened:
        yield opened


def schema_of(place: Path) -> str:
    return split_schema(ENGINE.url(place))[1]


# The URL


@pytest.mark.parametrize(
    ("url", "bare", "name"),
    [
        ("postgresql:///runs", "postgresql:///runs", "postgresql:///runs"),
        (
            "postgresql://bob:pw@one:5432,two:5433/runs?schema=s&target_session_attrs=read-write",
            "postgresql://bob:pw@one:5432,two:5433/runs?target_session_attrs=read-write",
            "postgresql://one:5432,two:5433/runs",
        ),
        (
            "postgresql://h/runs?options=-c%20work_mem%3D8MB&password=a+b",
            "postgresql://h/runs?options=-c%20work_mem%3D8MB&password=a+b",
            "postgresql://h/runs",
        ),
    ],
)
def test_the_driver_gets_a_url_as_it_was_written(url: str, bare: str, name: str):
    assert split_schema(url)[0] == bare
    assert printable_url(url) == name
    assert split_schema(tenant_url(url, "acme"))[0] == bare


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:p/s3cr3t@127.0.0.1/runs",
        "postgresql://bob:p@s3cr3t@127.0.0.1/runs",
        "postgresql://bob:p?s3cr3t@127.0.0.1/runs",
        "postgresql://bob:p#s3cr3t@127.0.0.1/runs",
        "postgresql://bob:p%zzs3cr3t@127.0.0.1/runs",
        "postgresql://bob:s3cr3t@127.0.0.1/runs?sslmood=require",
        "postgresql://bob:s3cr3t@127.0.0.1:none/runs",
        "postgresql://bob:s3cr3t@127.0.0.1:1/runs",
    ],
)
def test_a_url_that_leads_nowhere_is_told_without_its_password(url: str):
    with pytest.raises((ConfigurationError, StoreUnavailable)) as caught:
        open_store(url)
    assert caught.value.hint
    assert SECRET not in "".join(traceback.format_exception(caught.value))


# Who may not


def test_each_reason_not_to_be_let_in_says_what_to_do(server: PostgresServer):
    rules = server.folder / "data" / "pg_hba.conf"
    rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'".encode())
        connection.execute("SELECT pg_reload_conf()")

    def is_guarded() -> bool:
        try:
            psycopg.connect(host=str(server.folder), user="guarded", dbname="postgres").close()
        except psycopg.OperationalError:
            return True
        return False

    until(is_guarded, "the rules are read again")
    host = quote(str(server.folder), safe="")
    for user, database, hint in [
        (f"guarded:not{SECRET}@", "postgres", "PGPASSWORD"),
        ("nobody@", "postgres", "CREATE ROLE"),
        ("postgres@", "nothing", "CREATE DATABASE"),
    ]:
        with pytest.raises(StoreUnavailable) as caught:
            open_store(f"postgresql://{user}/{database}?host={host}")
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert hint in caught.value.hint


def test_a_role_that_may_make_no_schema_uses_the_one_it_was_given(
    server: PostgresServer, tmp_path: Path
):
    with server.connect() as connection:
        connection.execute("CREATE ROLE plain LOGIN; CREATE ROLE looker LOGIN")
        connection.execute("CREATE SCHEMA given; GRANT USAGE, CREATE ON SCHEMA given TO plain")
    url = ENGINE.url(tmp_path).replace("postgres@", "plain@")
    with pytest.raises(StoreUnavailable, match="may not be used") as caught:
        open_store(url)
    assert "permission denied" in caught.value.cause and "GRANT USAGE" in caught.value.hint
    given = url.partition("&schema=")[0] + "&schema=given"
    with closing(open_store(given)) as store:
        assert store.commit(Batch([span_of(b"i" * 16, 1)])).spans_new == 1
    with server.connect() as connection:
        connection.execute(
            "GRANT USAGE ON SCHEMA given TO looker; GRANT SELECT ON ALL TABLES IN SCHEMA given TO looker"
        )
    looker = given.replace("plain@", "looker@")
    with closing(open_store(looker, read_only=True)) as store:
        assert [run.spans for run in store.runs(Query())] == [1]
    with pytest.raises(StoreUnavailable, match="may not be used"):
        open_store(looker)


# Versions


def test_receivers_that_start_at_once_make_the_tables_once(tmp_path: Path):
    opened: list[WholeStore] = []
    start = threading.Barrier(4)

    def open_it() -> None:
        start.wait()
        opened.append(ENGINE.writer(tmp_path))

    for _ in range(2):
        threads = [threading.Thread(target=open_it) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(opened) == 8
    for number, store in enumerate(opened, 1):
        assert store.commit(Batch([span_of(b"i" * 16, number)])).position == number
        store.close()


def test_a_receiver_writes_no_more_once_a_newer_one_has_changed_the_tables(
    store: WholeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store.commit(Batch([span_of(b"i" * 16, 1)]))
    newer = schema.VERSION + 1
    with monkeypatch.context() as later:
        later.setattr(schema, "VERSION", newer)
        later.setitem(schema.MIGRATIONS, newer - 1, "CREATE TABLE later(id bigint)")
        with closing(ENGINE.writer(tmp_path)) as other:
            other.commit(Batch([span_of(b"i" * 16, 2)]))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=f"has schema {newer}") as caught:
            store.commit(Batch([span_of(b"i" * 16, 3)]))
        assert caught.value.hint == "pip install -U playhead"
    assert store.position() == 2


# Several receivers


def test_one_of_several_receivers_keeps_the_store_in_order(store: WholeStore, tmp_path: Path):
    with closing(ENGINE.writer(tmp_path)) as other, closing(ENGINE.writer(tmp_path / "x")) as another:
        with store.exclusive_maintenance() as first, other.exclusive_maintenance() as second:
            assert (first, second) == (True, False)
            with another.exclusive_maintenance() as elsewhere:
                assert elsewhere
        with other.exclusive_maintenance() as second:
            assert second


def test_a_tenant_is_indexed_while_another_is(store: WholeStore, server: PostgresServer, tmp_path: Path):
    """Locks are those of a schema, although PostgreSQL's are those of a database."""
    store.commit(Batch([span_of(b"i" * 16, 1, text="a needle")]))
    with closing(ENGINE.writer(tmp_path / "other")) as other, server.connect() as connection:
        other.commit(Batch([span_of(b"i" * 16, 1, text="a needle")]))
        with connection.transaction():
            connection.execute(f"SET LOCAL search_path TO {schema_of(tmp_path / 'other')}".encode())
            connection.execute("SELECT pg_advisory_xact_lock(1886152806, hashtext(current_schema()))")
            assert (store.index(), other.index()) == (1, 0)
        assert other.index() == 1


def test_two_receivers_that_keep_and_take_at_once_do_not_stop_each_other(tmp_path: Path):
    """Commits, summaries, blocks, the index and deletion of the same runs, from two receivers."""
    stores = [ENGINE.writer(tmp_path), ENGINE.writer(tmp_path)]
    for trace in range(1, 13):
        for number in range(5):
            stores[0].commit(
                Batch([span_of(bytes([trace]) * 16, number + 1, text=f"said {number} " * 60)])
            )
    start, problems, noted = threading.Barrier(4), list[BaseException](), list[str]()

    def keep(store: WholeStore) -> None:
        while store.sum_up() or store.compact(quiet_s=0):
            pass
        apply(store, Policy(success_s=0), 1 << 62, noted.append)

    def take(store: WholeStore) -> None:
        for number in range(30):
            store.commit(Batch([span_of(b"new" + bytes(13), number + 1, text="said 3 " * 60)]))
            store.index()

    def do(action: Any, store: WholeStore) -> None:
        start.wait()
        try:
            action(store)
        except BaseException as problem:
            problems.append(problem)

    threads = [
        threading.Thread(target=do, args=(action, store)) for store in stores for action in (keep, take)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(set(noted)) >= 12
    left = [run for run in stores[0].runs(Query()) if run.spans < 30]
    assert len(left) <= 1  # what came of the new run while it was deleted begins anew
    assert list(stores[1].verify()) == []
    for store in stores:
        store.close()


@pytest.mark.parametrize(("held_s", "transactions"), [(0.0, 5), (1e9, 3)])
def test_a_deletion_lets_others_commit_after_a_few_runs(
    store: WholeStore,
    server: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    held_s: float,
    transactions: int,
):
    monkeypatch.setattr(engine, "HELD_S", held_s)
    traces = [bytes([number]) * 16 for number in range(1, 6)]
    for trace in traces:
        store.commit(Batch([span_of(trace, 1, text="said by all of them " * 40)], facts_of(trace, [0])))
    gone = store.delete(traces)
    assert (gone.runs, gone.spans, gone.facts) == (5, 5, 5)
    assert list(store.verify()) == []
    with server.connect() as connection:
        found = connection.execute(f"SELECT deletions FROM {schema_of(tmp_path)}.counter".encode())
        assert found.fetchone() == (transactions,)


def test_what_one_receiver_takes_is_told_live_by_another(tmp_path: Path):
    url = ENGINE.url(tmp_path)
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    kept = Configuration(addresses, storage=Storage(url))
    with Receiver(tmp_path / "one", kept) as one, Receiver(tmp_path / "two", kept) as two:
        with httpx.stream(
            "GET", f"{two.query_endpoint}/v1/live", params={"after": 0}, timeout=60
        ) as answer:
            one.store.commit(Batch([span_of(b"i" * 16, 1)], facts_of(b"i" * 16, range(1))))
            lines = answer.iter_lines()
            told = [json.loads(line[6:]) for line in _first(lines, 2) if line.startswith("data: ")]
    assert {event["trace_id"] for event in told} == {(b"i" * 16).hex()}


def _first(lines: Iterator[str], events: int) -> Iterator[str]:
    for line in lines:
        yield line
        events -= line.startswith("data: ")
        if not events:
            return


# How it is asked


def test_a_word_that_hardly_anybody_said_is_found_without_reading_all(
    store: WholeStore, server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[tuple[str, Sequence[Any]]] = []

    class Noting(search.PgDb):
        def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:
            asked.append((sql, values))
            return super().execute(sql, values)

    monkeypatch.setattr(search, "PgDb", Noting)
    with server.connect() as connection:
        connection.execute(f"SET search_path TO {schema_of(tmp_path)}".encode())
        connection.execute(
            "INSERT INTO text_words SELECT n::bigint << 24, CAST('often:1 said' || n % 500 || ':2 '"
            " || CASE WHEN n < 1500 THEN 'once:4 ' ELSE '' END"
            " || repeat('x', 900) || ':3' AS tsvector) FROM generate_series(1, 8000) AS n"
        )
        connection.execute("ANALYZE text_words")
        monkeypatch.setattr(search, "FEW", 1000)
        for word in ("often", "needle", "said7", "once"):
            asked.clear()
            assert store.search(word, 20) == []  # these rows are of no bundle
            found = [(sql, values) for sql, values in asked if "text_words" in sql]
            assert found
            for sql, values in found:
                with connection.transaction():
                    if "newest" not in sql and "max" not in sql:
                        connection.execute(
                            "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off"
                        )
                    plan = connection.execute(
                        f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}".encode(), values
                    ).fetchone()
                assert plan is not None
                assert _rows_read(plan[0][0]["Plan"]) <= search.NEWEST, plan


def _rows_read(plan: dict[str, Any]) -> int:
    """Rows of tables that were looked at."""
    own = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) if "Relation Name" in plan else 0
    return int(own) + sum(_rows_read(below) for below in plan.get("Plans", ()))


def test_a_bundle_of_a_long_trace_is_read_without_the_others(
    store: WholeStore, server: PostgresServer, tmp_path: Path
):
    """Who indexes reads each bundle once, not the trace with each bundle."""
    for begin in range(1, 3000, 300):
        store.commit(Batch([span_of(b"i" * 16, number) for number in range(begin, begin + 300)]))
    with server.connect() as connection:
        connection.execute(f"SET search_path TO {schema_of(tmp_path)}; ANALYZE span".encode())
        plan = connection.execute(
            "EXPLAIN (ANALYZE, FORMAT JSON) SELECT place FROM span WHERE bundle = 5"
        ).fetchone()
    assert plan is not None
    assert _rows_read(plan[0][0]["Plan"]) == 300


# When it goes away


def test_a_long_read_ends_with_the_database_and_the_next_begins_with_it(
    server: PostgresServer, store: WholeStore
):
    spans = [span_of(b"i" * 16, number, text=f"said {number} " * 60) for number in range(1, 601)]
    store.commit(Batch(spans))
    reads = iter(store.spans(b"i" * 16)), iter(store.verify())
    assert next(reads[0]) == spans[0]
    server.kill()
    for read in reads:
        with pytest.raises(StoreUnavailable, match="cannot be used") as caught:
            list(read)
        assert caught.value.hint == "start the database, or check host and port"
    server.start()
    assert list(store.spans(b"i" * 16)) == spans
    assert list(store.verify()) == []


def test_connections_that_nobody_needs_are_let_go(
    server: PostgresServer, store: WholeStore, monkeypatch: pytest.MonkeyPatch
):
    def there() -> set[int]:
        with server.connect() as connection:
            found = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'playhead'"
            ).fetchall()
        return {int(row[0]) for row in found}

    before = there()  # also those of other stores, which may be about to go
    held = [store.exclusive_maintenance() for _ in range(5)]
    for one in held:
        one.__enter__()
    assert len(there() - before) >= 4
    for one in held:
        one.__exit__(None, None, None)
    monkeypatch.setattr(reader, "IDLE_S", 0.0)
    list(store.runs(Query()))
    until(lambda: len(there() - before) <= 1, "they are closed")


def test_what_is_written_by_another_way_is_refused_as_a_problem_of_the_store(
    server: PostgresServer, store: WholeStore, tmp_path: Path
):
    """Whatever the driver says becomes an error of ours, so that no thread of a receiver ends by it."""
    with server.connect() as connection:
        connection.execute(f"ALTER TABLE {schema_of(tmp_path)}.bundle ADD CHECK (id < 2)".encode())
    store.commit(Batch([span_of(b"1" * 16, 1)]))
    with pytest.raises(StoreError, match="refused a statement") as caught:
        store.commit(Batch([span_of(b"2" * 16, 1)]))
    assert isinstance(caught.value.__cause__, psycopg.errors.CheckViolation)
    assert store.position() == 1
