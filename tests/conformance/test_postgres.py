"""The PostgreSQL engine does what every engine has to do, for several receivers, also when it dies."""

from __future__ import annotations

import os
import random
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from conformance import older
from conformance.engines import Postgres
from conformance.store_suite import StoreSuite
from conformance.suite.custody import ManyChanges
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.outside.senders import Sender, Standing, all_are_refused, more, nothing_is_missing, sending
from support.servers.postgres import PostgresServer
from support.tapes.batches import facts_of, span_of
from support.whole_store import WholeStore
from urllib3 import PoolManager

from playhead_checkpoint import Lineage
from playhead_checkpoint.store.conformance import conversation
from playhead_core.errors import ConfigurationError, StoreUnavailable
from playhead_core.facts import Content, Fact
from playhead_receiver.config.configuration import Addresses, Configuration, Storage
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Query, open_store
from playhead_receiver.storage.api.maintenance import Backup
from playhead_receiver.storage.api.store import NotOffered, needed
from playhead_receiver.storage.postgres.schema import VERSION
from playhead_receiver.storage.runs.naming import printable_url, split_schema, tenant_url

ENGINE = Postgres()
THREADS = 4
DEADLINE_S = 60.0


pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[WholeStore]:
    opened = ENGINE.writer(tmp_path)
    yield opened
    opened.close()


class TestPostgres(StoreSuite):
    engine = "postgres"


class TestCustody(ManyChanges):
    engine = "postgres"
    trials = 300


def _kill_the_database(server: PostgresServer, place: Path, kills: int, seed: int) -> None:
    """Commit from several threads, each batch until it is acknowledged; kill at moments by number."""
    moments = random.Random(seed)
    store = ENGINE.writer(place)
    acknowledged = [0] * THREADS
    more, stop, up = threading.Event(), threading.Event(), threading.Event()
    up.set()

    def write(number: int) -> None:
        instance = bytes([number + 1]) * 16
        in_doubt = False
        while in_doubt or not stop.is_set():
            beat = acknowledged[number]
            batch = Batch(
                [span_of(instance, beat + 1, text="x" * 3000)],
                facts_of(instance, range(beat * 3, beat * 3 + 3)),
            )
            try:
                store.commit(batch)
            except StoreUnavailable:
                in_doubt = True
                up.wait(DEADLINE_S)
                continue
            in_doubt = False
            acknowledged[number] += 1
            more.set()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        goal = sum(acknowledged) + moments.randrange(2, 40)
        while sum(acknowledged) < goal:
            assert more.wait(DEADLINE_S)
            more.clear()
        up.clear()
        server.kill()
        server.start()
        up.set()
    stop.set()
    for thread in threads:
        thread.join()
    for number, count in enumerate(acknowledged):
        instance = bytes([number + 1]) * 16
        assert [fact.seq for fact in store.tape(instance).facts()] == list(range(count * 3))
        spans = [span.span_id for span in store.spans(instance)]
        assert spans == [(one + 1).to_bytes(8, "big") for one in range(count)]
    assert store.position() == 4 * sum(acknowledged)
    assert list(store.verify()) == []
    store.close()


def test_nothing_acknowledged_is_lost_when_the_database_is_killed(
    server: PostgresServer, tmp_path: Path
):
    _kill_the_database(server, tmp_path, kills=3, seed=11)


@pytest.mark.acceptance
def test_nothing_acknowledged_is_lost_in_twenty_kills_of_the_database(
    server: PostgresServer, tmp_path: Path
):
    _kill_the_database(server, tmp_path, kills=20, seed=12)


def test_a_reader_goes_on_when_the_database_is_back(server: PostgresServer, store: WholeStore):
    store.commit(Batch([span_of(b"i" * 16, 1)]))
    before = list(store.runs(Query()))
    server.kill()
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        list(store.runs(Query()))
    with pytest.raises(StoreUnavailable):
        store.commit(Batch([span_of(b"i" * 16, 2)]))
    server.start()
    assert list(store.runs(Query())) == before
    assert store.commit(Batch([span_of(b"i" * 16, 2)])).position == 2


# Several receivers


def test_two_receivers_take_the_same_batches_at_once(tmp_path: Path):
    stores = [ENGINE.writer(tmp_path), ENGINE.writer(tmp_path)]
    counts: list[tuple[int, int]] = []
    start = threading.Barrier(4)

    def write(number: int) -> None:
        start.wait()
        for beat in range(12):
            instance = b"i" * 16
            batch = Batch(
                [span_of(instance, beat + 1, text="y" * 500, instance=instance)],
                facts_of(instance, range(beat * 2, beat * 2 + 2)),
            )
            receipt = stores[number % 2].commit(batch)
            counts.append((receipt.spans_new, receipt.facts_new))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(spans for spans, _ in counts) == 12
    assert sum(facts for _, facts in counts) == 24
    for store in stores:
        assert [fact.seq for fact in store.tape(b"i" * 16).facts()] == list(range(24))
        assert len(list(store.spans(b"i" * 16))) == 12
        assert [change.position for change in store.changes(0)] == list(range(1, 37))
        assert [run.name for run in store.runs(Query())] == ["run-1"]
    assert list(stores[0].verify()) == []
    for store in stores:
        store.close()


def _history(turns: list[str]) -> str:
    return "[" + ",".join(f'{{"role":"user","content":"{turn}"}}' for turn in turns) + "]"


def test_what_one_receiver_does_not_answer_for_any_more_another_takes(tmp_path: Path):
    """A client that resends to the next receiver: nothing twice, nothing lost, one run by one name."""
    url, trace = ENGINE.url(tmp_path), b"t" * 16
    pool = PoolManager()

    def send(receiver: Receiver, numbers: range) -> None:
        spans = [span_of(trace, number, text="said " * 200) for number in numbers]
        request = ExportTraceServiceRequest()
        for one in spans:
            request.resource_spans.append(ResourceSpans.FromString(one.otlp))
        answer = pool.request(
            "POST",
            f"{receiver.http_endpoint}/v1/traces",
            body=request.SerializeToString(),
            headers={"content-type": "application/x-protobuf"},
        )
        assert answer.status == 200

    kept = Configuration(Addresses(http_port=0, grpc_port=None), storage=Storage(url))
    with Receiver(tmp_path / "two", kept) as two:
        with Receiver(tmp_path / "one", kept) as one:
            send(one, range(1, 11))
            send(two, range(11, 21))
            send(one, range(21, 31))
            assert [run.name for run in one.store.runs(Query())] == ["refund-1"]
        send(two, range(21, 41))  # the first ten of these came before
        (run,) = two.store.runs(Query())
        assert (run.name, run.spans) == ("refund-1", 40)
        found = [int.from_bytes(span.span_id, "big") for span in two.store.spans(trace)]
        assert found == list(range(1, 41))
        assert two.store.position() == 40
        assert list(two.store.verify()) == []
    pool.clear()


@pytest.mark.parametrize(
    "kills", [1, pytest.param(15, marks=[pytest.mark.acceptance, pytest.mark.timeout(300)])]
)
def test_one_of_two_receivers_is_killed_and_its_senders_go_to_the_other(tmp_path: Path, kills: int):
    url = ENGINE.url(tmp_path)
    senders = [Sender(number) for number in range(1, 5)]
    staying = Standing(tmp_path / "staying", store=url)
    with sending(senders[2:], staying):
        for kill in range(kills):
            going = Standing(tmp_path / f"going {kill}", store=url)
            with sending(senders[:2], going):
                more(senders[:2], 8)
                going.kill()
            more(senders[2:], 8)
        with sending(senders[:2], staying):
            more(senders[:2], 8)
            staying.kill()
    nothing_is_missing(url, senders)


@pytest.mark.parametrize(
    "kills", [1, pytest.param(25, marks=[pytest.mark.acceptance, pytest.mark.timeout(600)])]
)
def test_senders_come_again_while_the_database_is_away(
    server: PostgresServer, tmp_path: Path, kills: int
):
    """Over both transports: told to come again, by a receiver that goes on by itself."""
    url, moments = ENGINE.url(tmp_path), random.Random(kills)
    senders = [Sender(number) for number in range(1, 5)]
    standing = Standing(tmp_path / "standing", store=url)
    with sending(senders, standing):
        for _ in range(kills):
            more(senders, moments.randrange(4, 60))
            server.kill()
            try:
                all_are_refused(senders)
            finally:
                server.start()
        more(senders, 8)
        standing.kill()
    nothing_is_missing(url, senders)


def test_a_chain_that_another_receiver_began_is_gone_on_with(server: PostgresServer, tmp_path: Path):
    """Twenty turns as twenty traces, by two receivers in turn: each adds what is new."""
    turns = [os.urandom(400).hex() for _ in range(20)]
    spans = [
        span_of(bytes([n]) * 16, n, gen_ai__input__messages=_history(turns[:n])) for n in range(1, 21)
    ]
    stores = [ENGINE.writer(tmp_path), ENGINE.writer(tmp_path)]
    for number, span in enumerate(spans):
        stores[number % 2].commit(Batch([span]))
    schema = split_schema(Postgres.url(tmp_path))[1]
    with server.connect() as connection:
        found = connection.execute(f"SELECT length(data) FROM {schema}.bundle ORDER BY id").fetchall()  # type: ignore[arg-type]
    sizes = [row[0] for row in found]
    assert max(sizes) < 1300, sizes
    for span in spans:
        assert list(stores[0].spans(span.trace_id)) == [span]
    assert list(stores[1].verify()) == []
    gone = stores[0].delete([bytes([n]) * 16 for n in range(1, 20)])
    assert gone.runs == 19
    assert list(stores[1].spans(spans[-1].trace_id)) == [spans[-1]]
    again = span_of(b"z" * 16, 1, gen_ai__input__messages=_history(turns[:7]))
    stores[1].commit(Batch([again]))
    assert list(stores[0].spans(b"z" * 16)) == [again]
    assert list(stores[0].verify()) == []
    for store in stores:
        store.close()


# WholeStore


def test_what_was_said_is_found_until_it_is_deleted(
    server: PostgresServer, store: WholeStore, tmp_path: Path
):
    one = span_of(b"1" * 16, 1, long='Über "den Wolken" muss\\ndie Freiheit ' + "x " * 400)
    two = span_of(b"2" * 16, 2, long="Freiheit, die ich meine " + "y " * 400)
    body = Content.chunk(b"a question of foo_bar and 4711")
    fact = Fact(1, 1, "playhead.effect", b"1" * 16, b"s" * 8, instance=b"i" * 16, seq=0, body=body)
    store.commit(Batch([one], [fact]))
    store.commit(Batch([two]))
    assert store.lag().bundles == 2
    while store.index():
        pass
    assert (store.lag().bundles, store.lag().fact_runs) == (0, 0)

    def found(text: str) -> set[str]:
        return {hit.trace_id for hit in store.search(text)}

    assert found("freiheit") == {one.trace_id.hex(), two.trace_id.hex()}
    assert found("uber wolken") == {one.trace_id.hex()}
    assert found('"muss die freiheit"') == {one.trace_id.hex()}
    assert found('"die freiheit muss"') == set()
    assert found("mein*") == {two.trace_id.hex()}
    assert found("foo_bar 4711") == {one.trace_id.hex()}
    excerpt = store.search("wolken")[0].excerpt
    assert "Wolken" in excerpt
    store.delete([one.trace_id])
    assert found("freiheit") == {two.trace_id.hex()}
    assert found("4711") == set()
    schema = split_schema(Postgres.url(tmp_path))[1]
    with server.connect() as connection:
        for table in ("text_words", "fact_words"):
            rows = connection.execute(f"SELECT words::text FROM {schema}.{table}").fetchall()  # type: ignore[arg-type]
            assert not [row for row in rows if "wolken" in row[0] or "4711" in row[0]]


def test_large_bodies_are_in_the_database_once_and_go_with_the_last_run(store: WholeStore):
    body = Content.of(os.urandom(1024 * 1024))
    facts = [
        Fact(
            1,
            1,
            "playhead.effect",
            bytes([n]) * 16,
            b"s" * 8,
            body=body,
            instance=bytes([n]) * 16,
            seq=0,
        )
        for n in (1, 2)
    ]
    for fact in facts:
        store.commit(Batch(facts=[fact]))
        assert list(store.tape(fact.instance).facts()) == [fact]
    assert store.size_bytes() > 1024 * 1024
    assert store.delete([b"\1" * 16]).blobs == 0
    assert list(store.tape(b"\2" * 16).facts()) == [facts[1]]
    assert store.delete([b"\2" * 16]).blobs == 1
    assert list(store.verify()) == []


def test_summaries_are_kept_and_marks_too(store: WholeStore):
    for number in range(1, 4):
        instance = bytes([number]) * 16
        store.commit(Batch([span_of(instance, number, service="shop")]))
        store.commit(Batch(facts=facts_of(instance, range(2))))
    before = list(store.runs(Query()))
    while store.sum_up():
        pass
    assert list(store.runs(Query())) == before
    assert len(list(store.runs(Query(agent="shop")))) == 3
    assert [found for found in store.verify() if found.what == "run"] == []
    store.mark(b"\1" * 16, "held")
    store.mark(b"\1" * 16, "held")
    assert store.marks() == {b"\1" * 16: {"held"}}
    store.mark(b"\1" * 16, "held", on=False)
    assert store.marks() == {}


def test_frames_of_a_run_that_is_over_are_joined_and_parted(store: WholeStore):
    spans = [span_of(b"1" * 16, number, text=f"said {number} " * 40) for number in range(1, 7)]
    for span in spans:
        store.commit(Batch([span]))
    assert store.compact(quiet_s=0) == 1
    assert store.compact(quiet_s=0) == 0
    assert list(store.spans(b"1" * 16)) == spans
    later = span_of(b"2" * 16, 9, text="said 3 " * 40)
    store.commit(Batch([later]))
    store.delete([b"1" * 16])
    assert list(store.spans(b"2" * 16)) == [later]
    assert list(store.verify()) == []


def test_damage_is_found(server: PostgresServer, store: WholeStore, tmp_path: Path):
    store.commit(Batch([span_of(b"1" * 16, 1, text="a" * 300)], facts_of(b"i" * 16, range(2))))
    assert list(store.verify()) == []
    schema = split_schema(Postgres.url(tmp_path))[1]
    with server.connect() as connection:
        connection.execute(f"UPDATE {schema}.bundle SET data = 'nonsense'::bytea")  # type: ignore[arg-type]
        connection.execute(f"UPDATE {schema}.fact_range SET last = 7")  # type: ignore[arg-type]
    assert {one.what for one in store.verify()} == {"span", "text", "facts"}


def test_what_a_column_cannot_hold_spoils_nothing(store: WholeStore):
    odd: dict[str, Any] = {"gen_ai__conversation__id": "a\0b" * 2000, "gen_ai__tool__name": "t" * 9000}
    span = span_of(b"1" * 16, 1, service="s\0" * 3000, **odd)
    store.commit(Batch([span], facts_of(b"i" * 16, range(2), text="\0")))
    while store.sum_up():
        pass
    while store.index():
        pass
    assert list(store.spans(b"1" * 16)) == [span]
    assert len(list(store.runs(Query()))) == 2


def test_backup_says_what_does_it_and_that_does(
    store: WholeStore, server: PostgresServer, tmp_path: Path
):
    spans = [span_of(b"1" * 16, number, text="said") for number in (1, 2)]
    store.commit(Batch(spans, [large_fact(b"i" * 16)]))
    first = store.checkpoints().put(conversation(400), Lineage(b"1" * 16, thread="t", name="1"))
    then = store.checkpoints().put(conversation(401), Lineage(b"1" * 16, parent=first.id))
    store.checkpoints().note(then.id, {"key": conversation(30)})
    kept = store.checkpoints().checkpoints()
    with pytest.raises(NotOffered, match="PostgreSQL's own tools") as caught:
        needed(store, Backup)
    assert "access.sqlite in the data folder" in caught.value.cause
    tool, *words, place = shlex.split(caught.value.hint)
    assert place == printable_url(ENGINE.url(tmp_path))
    dump = server.folder / f"{tmp_path.name}.dump"
    server.run(tool, *(str(dump) if word == "runs.dump" else word for word in words), server.url())
    server.run("createdb", "-h", server.folder, "-U", "postgres", "back")
    server.run("pg_restore", "-d", server.url("back"), dump)
    schema = split_schema(ENGINE.url(tmp_path))[1]
    again = open_store(f"{server.url('back')}&schema={schema}")
    assert list(again.spans(b"1" * 16)) == spans
    assert [fact.body for fact in again.tape(b"i" * 16).facts()] == [large_fact(b"i" * 16).body]
    assert list(again.verify()) == []
    again.commit(Batch([span_of(b"2" * 16, 1)]))
    checkpoints = again.checkpoints()
    assert checkpoints.checkpoints() == kept
    assert checkpoints.state(first.id) == conversation(400)
    assert checkpoints.contents(then.id)[1:] == (conversation(401), {"key": conversation(30)})
    assert len(checkpoints.difference(first.id, then.id)) == len(
        store.checkpoints().difference(first.id, then.id)
    )
    checkpoints.put(conversation(402), Lineage(b"2" * 16, parent=then.id))
    assert checkpoints.damages() == []
    assert again.delete([b"1" * 16]).checkpoints == 2
    assert checkpoints.damages() == [] and checkpoints.count() == 1
    again.close()


def large_fact(instance: bytes) -> Fact:
    (fact,) = facts_of(instance, [0])
    return msgspec.structs.replace(fact, body=Content.chunk(bytes(600_000)))


# Places


def test_a_reader_does_not_write(tmp_path: Path):
    reader = ENGINE.reader(tmp_path)
    assert list(reader.runs(Query())) == []
    with pytest.raises(StoreUnavailable, match="reading only"):
        reader.commit(Batch())
    reader.close()


def test_there_is_a_store_of_every_older_version():
    assert older.versions(".postgres.sql.zst") == list(range(1, VERSION))


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_store_of_an_older_version_is_brought_to_this_one(server: PostgresServer, version: int):
    kept = older.STORES / f"store-{version}.postgres.sql.zst"
    with server.connect() as connection:
        connection.execute(zstandard.decompress(kept.read_bytes()))
    url = f"{server.url()}&schema=older_{version}"
    older.is_brought_to_this_version(
        open_store(url, read_only=True), lambda: open_store(url), version > 7
    )


def test_a_store_of_the_first_version_learns_which_blobs_it_needs(
    server: PostgresServer, tmp_path: Path
):
    store = ENGINE.writer(tmp_path)
    body = Content.of(os.urandom(600_000))
    needed = Fact(1, 1, "playhead.state", body=body, instance=b"i" * 16, seq=0, trace_id=b"i" * 16)
    store.commit(Batch([span_of(b"i" * 16, 1)], [needed]))
    store.close()
    schema = split_schema(ENGINE.url(tmp_path))[1]
    with server.connect() as connection:  # what later versions have added
        connection.execute(f"SET search_path TO {schema}".encode())
        connection.execute(
            "DROP TABLE owner, place, strand, signature, blob_use, aged, link, tombstone, log;"
            " DROP INDEX run_origin, span_bundle; ALTER TABLE counter DROP COLUMN looked"
        )
        connection.execute("UPDATE version SET number = 1")
    store = ENGINE.writer(tmp_path)
    assert list(store.spans(b"i" * 16)) == [span_of(b"i" * 16, 1)]
    assert list(store.verify()) == []
    assert store.delete([b"i" * 16]).blobs == 1
    store.close()
    with server.connect() as connection:
        connection.execute(f"SET search_path TO {schema}".encode())
        assert connection.execute("SELECT number FROM version").fetchone() == (VERSION,)
        assert connection.execute("SELECT count(*) FROM owner").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM place").fetchone() == (0,)


def test_tables_that_are_gone_are_told_and_nothing_is_taken(
    server: PostgresServer, store: WholeStore, tmp_path: Path
):
    store.commit(Batch([span_of(b"1" * 16, 1)]))
    schema = split_schema(ENGINE.url(tmp_path))[1]
    with server.connect() as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    with pytest.raises(StoreUnavailable, match="are not there") as caught:
        store.commit(Batch([span_of(b"1" * 16, 2)]))
    assert caught.value.cause == 'relation "counter" does not exist'
    with pytest.raises(StoreUnavailable, match="are not there"):
        list(store.runs(Query()))


def test_a_database_of_another_kind_is_none(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="unknown kind of store: mysql://"):
        open_store("mysql://bob:secret@127.0.0.1/runs")


def test_a_newer_schema_is_refused(server: PostgresServer, tmp_path: Path):
    ENGINE.writer(tmp_path).close()
    schema = split_schema(Postgres.url(tmp_path))[1]
    with server.connect() as connection:
        connection.execute(f"UPDATE {schema}.version SET number = 99")  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable, match="schema 99"):
        ENGINE.writer(tmp_path)


def test_a_place_says_neither_user_nor_password(tmp_path: Path):
    url = "postgresql://bob:secret@127.0.0.1:1/runs?connect_timeout=2"
    assert printable_url(url) == "postgresql://127.0.0.1:1/runs"
    from playhead_receiver.storage import open_store

    with pytest.raises(StoreUnavailable) as caught:
        open_store(url)
    assert "secret" not in f"{caught.value} {caught.value.what} {caught.value.cause}"
    with pytest.raises(ConfigurationError, match="63 bytes"):
        open_store(f"postgresql://127.0.0.1:1/runs?schema={'x' * 64}")


def test_a_tenant_has_a_schema_of_its_own():
    url = "postgresql://u@h/d?sslmode=require&schema=runs"
    assert split_schema(url) == ("postgresql://u@h/d?sslmode=require", "runs")
    assert split_schema(tenant_url(url, "acme")) == (
        "postgresql://u@h/d?sslmode=require",
        "runs_acme",
    )
    long = {split_schema(tenant_url(url, "t" * 80 + end))[1] for end in "ab"}
    assert len(long) == 2 and all(len(name) <= 63 for name in long)
