"""Stores of both engines whose large bodies lie in S3: object first, then row, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conformance.engines import Postgres
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from support.servers.object_server import ObjectServer
from support.starting.warm import Process
from support.tapes.batches import facts_of, span_of
from support.whole_store import WholeStore
from urllib3 import PoolManager

from playhead_core.errors import ConfigurationError, StoreUnavailable
from playhead_core.facts import Content, Fact
from playhead_core.otlp import pack, resource_logs, set_attributes
from playhead_receiver.config.configuration import Addresses, Configuration, Storage
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Query, open_store, restore
from playhead_receiver.storage.api.maintenance import Backup
from playhead_receiver.storage.api.store import NotOffered, needed
from playhead_receiver.storage.content import object_store as object_module
from playhead_receiver.storage.content.object_store import BlobObjects
from playhead_receiver.storage.content.references import References
from playhead_receiver.storage.values.stored import StoredTape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

ONE, TWO = b"1" * 16, b"2" * 16
Open = Callable[..., WholeStore]


@pytest.fixture
def url(bucket: ObjectServer) -> str:
    return bucket.url(os.urandom(8).hex())


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the store of this test; ``blobs``, ``read_only``."""
    place: Any = tmp_path / "data"
    if request.param == "postgres":
        request.getfixturevalue("server")
        place = Postgres.url(tmp_path)
    stores: list[WholeStore] = []

    def open_one(**options: Any) -> WholeStore:
        stores.append(open_store(place, **options))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


def test_what_spans_refer_to_in_a_bucket_is_read_and_searched(
    opened: Open, bucket: ObjectServer, url: str
):
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "order 81?"}]}]).encode()
    for path, data in (("in/put.json", said), ("in2/put.json", said), ("in/bad.json", said * 4)):
        bucket.put(f"{url}/{path}", data)
    references = References(["", f"{url}/in/"])
    name = a.GEN_AI_INPUT_MESSAGES_REF
    uri = f"{url}/in/put.json"
    assert references.resolved({name: uri}) == ({a.GEN_AI_INPUT_MESSAGES: json.loads(said)}, {})
    for other in (
        f"{url}/in2/put.json",
        f"{url}/in/../in2/put.json",
        f"{url}/in/missing.json",
        f"{url}/in/bad.json",
        "s3://other/in/put.json",
    ):
        assert references.resolved({name: other}) == ({}, {a.GEN_AI_INPUT_MESSAGES: other})
    store = opened(references=references)
    store.commit(Batch([span_of(ONE, 1, **{name: uri}), span_of(TWO, 1)]))
    while store.index():
        pass
    (hit,) = store.search('"order 81"')
    assert (hit.trace_id, "order 81?" in hit.excerpt) == (ONE.hex(), True)
    bucket.fail()
    try:
        assert references.resolved({name: uri}) == ({}, {a.GEN_AI_INPUT_MESSAGES: uri})
    finally:
        bucket.fail(False)


def large(instance: bytes, body: bytes, seq: int = 0) -> Fact:
    content = Content.of(body)
    return Fact(
        1, 1, e.PLAYHEAD_EFFECT, instance, instance[:8], body=content, instance=instance, seq=seq
    )


def body_of(tape: StoredTape) -> bytes:
    (fact,) = tape.facts()
    assert fact.body is not None and fact.body.inline is not None
    return fact.body.inline


def test_large_bodies_lie_in_the_object_store_once(opened: Open, url: str):
    body = os.urandom(1_000_000)
    store = opened(blobs=url)
    before = store.size_bytes()
    for instance in (ONE, TWO):
        store.commit(Batch(facts=[large(instance, body)]))
    assert [BlobObjects(url).get(digest) for digest in BlobObjects(url)] == [body]
    assert 1_000_000 <= store.size_bytes() - before < 1_300_000
    store.close()
    for again in (opened(read_only=True), opened()):  # nobody has to be told where it lies
        assert body_of(again.tape(ONE)) == body_of(again.tape(TWO)) == body
        assert list(again.verify()) == []


def test_a_body_that_cannot_be_put_is_refused_and_comes_again(
    opened: Open, url: str, bucket: ObjectServer
):
    store = opened(blobs=url)
    batch = Batch(facts=[large(ONE, bytes(600_000))])
    bucket.fail()
    try:
        with pytest.raises(StoreUnavailable, match="s3://"):
            store.commit(batch)
        assert store.position() == 0
        assert store.commit(Batch(facts=facts_of(TWO, range(3)))).facts_new == 3
    finally:
        bucket.fail(False)
    assert store.commit(batch).facts_new == 1
    assert body_of(store.tape(ONE)) == bytes(600_000)
    assert list(store.verify()) == []


def test_an_object_without_a_row_is_swept_when_it_is_old(
    opened: Open, url: str, monkeypatch: pytest.MonkeyPatch
):
    store = opened(blobs=url)
    store.commit(Batch(facts=[large(ONE, bytes(600_000))]))
    orphan = BlobObjects(url).put(b"its commit never came to an end")
    assert store.sweep().blobs == 0
    assert BlobObjects(url).has(orphan)
    monkeypatch.setattr(object_module, "GRACE_S", -5.0)
    assert store.sweep().blobs == 1
    assert not BlobObjects(url).has(orphan)
    assert body_of(store.tape(ONE)) == bytes(600_000)


def test_a_deleted_run_takes_its_objects_with_it(opened: Open, url: str):
    store = opened(blobs=url)
    shared, own = bytes(600_000), bytes(700_000)
    store.commit(Batch(facts=[large(ONE, shared), large(ONE, own, 1), large(TWO, shared)]))
    deleted = store.delete([ONE])
    assert (deleted.runs, deleted.facts, deleted.blobs) == (1, 2, 1)
    assert [BlobObjects(url).get(digest) for digest in BlobObjects(url)] == [shared]
    assert body_of(store.tape(TWO)) == shared
    assert list(store.verify()) == []


def test_objects_that_could_not_be_deleted_go_with_a_later_sweep(
    opened: Open, url: str, bucket: ObjectServer, monkeypatch: pytest.MonkeyPatch
):
    store = opened(blobs=url)
    store.commit(Batch(facts=[large(ONE, bytes(600_000))]))
    bucket.fail()
    try:
        with pytest.raises(StoreUnavailable):
            store.delete([ONE])
    finally:
        bucket.fail(False)
    assert list(store.runs(Query())) == []
    assert len(list(BlobObjects(url))) == 1
    monkeypatch.setattr(object_module, "GRACE_S", -5.0)
    assert store.sweep().blobs == 1
    assert list(BlobObjects(url)) == []


def test_a_missing_object_is_found(opened: Open, url: str, bucket: ObjectServer):
    store = opened(blobs=url)
    store.commit(Batch(facts=[large(ONE, bytes(600_000))]))
    (digest,) = BlobObjects(url)
    bucket.fail()
    try:
        with pytest.raises(StoreUnavailable):  # nothing can be said of what cannot be reached
            list(store.verify())
    finally:
        bucket.fail(False)
    BlobObjects(url).delete(digest)
    found = [(one.what, one.where) for one in store.verify()]
    assert found == [("blob", digest.hex()), ("facts", f"{ONE.hex()} 0-0")]


def test_a_store_may_move_to_an_object_store(opened: Open, url: str, bucket: ObjectServer):
    old, new, newest = (bytes([number]) * 600_000 for number in range(3))
    store = opened()
    reading = opened(read_only=True)
    store.commit(Batch(facts=[large(ONE, old)]))
    store.close()
    store = opened(blobs=url)
    store.commit(Batch(facts=[large(TWO, new)]))
    assert body_of(reading.tape(TWO)) == new  # it was open before
    assert [BlobObjects(url).get(digest) for digest in BlobObjects(url)] == [new]
    store.close()
    store = opened(blobs=url + "-2")
    store.commit(Batch(facts=[large(b"3" * 16, newest)]))
    assert [body_of(store.tape(one)) for one in (ONE, TWO, b"3" * 16)] == [old, new, newest]
    assert list(store.verify()) == []
    assert store.delete([ONE, TWO]).blobs == 2
    assert list(BlobObjects(url)) == []


def test_a_store_that_knows_its_place_opens_when_that_is_out_of_order(
    opened: Open, url: str, bucket: ObjectServer
):
    opened(blobs=url).close()
    bucket.fail()
    try:
        store = opened(blobs=url)
        assert store.commit(Batch(facts=facts_of(TWO, range(3)))).facts_new == 3
        store.close()
        with pytest.raises(StoreUnavailable):
            opened(blobs=url + "-2")
    finally:
        bucket.fail(False)


def test_the_place_of_another_store_is_refused(opened: Open, url: str, tmp_path: Path):
    open_store(tmp_path / "other", blobs=url).close()
    with pytest.raises(ConfigurationError, match="of another store"):
        opened(blobs=url)
    store = opened()  # it is not remembered
    store.commit(Batch(facts=[large(ONE, bytes(600_000))]))
    assert list(BlobObjects(url)) == []


@pytest.mark.parametrize(
    "given",
    ["/tmp/blobs", "http://host/x", "memory:///", "s3:///x", "s3://key:secret@b/x", "s3://b/x?k=1"],
)
def test_what_is_no_place_is_refused(given: str, tmp_path: Path):
    with pytest.raises(ConfigurationError) as caught:
        open_store(tmp_path, blobs=given)
    assert "secret" not in str(caught.value)


def test_a_backup_holds_what_lies_in_the_object_store(url: str, bucket: ObjectServer, tmp_path: Path):
    store = open_store(tmp_path / "data", blobs=url)
    store.commit(Batch(facts=[large(ONE, bytes(600_000))]))
    store.backup(tmp_path / "copy")
    store.delete([ONE])
    store.close()
    restore(tmp_path / "copy", tmp_path / "back")
    bucket.fail()
    try:
        again = open_store(tmp_path / "back")
        assert body_of(again.tape(ONE)) == bytes(600_000)
        assert list(again.verify()) == []
        again.close()
    finally:
        bucket.fail(False)


def test_a_database_names_the_objects_that_its_dump_lacks(server: Any, url: str, tmp_path: Path):
    store = open_store(Postgres.url(tmp_path), blobs=url)
    with pytest.raises(NotOffered) as caught:
        needed(store, Backup)
    store.close()
    assert f"then copy the objects under {url}; " in caught.value.cause


def test_a_client_hears_that_it_may_send_again(url: str, bucket: ObjectServer, tmp_path: Path):
    resource = Resource()
    set_attributes(resource.attributes, {a.PLAYHEAD_INSTANCE: ONE.hex()})
    logs = resource_logs(resource, list(pack([large(ONE, bytes(600_000))])))
    body = ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()
    pool = PoolManager()

    def send() -> int:
        sent = pool.request(
            "POST",
            f"{receiver.http_endpoint}/v1/logs",
            body=body,
            headers={"content-type": "application/x-protobuf"},
        )
        return sent.status

    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=None), storage=Storage(blobs=url))
    ) as receiver:
        bucket.fail()
        try:
            assert send() == 503
        finally:
            bucket.fail(False)
        assert send() == 200
        assert body_of(receiver.store.tape(ONE)) == bytes(600_000)
        services = receiver.tenants.services("acme")
        services.store.commit(Batch(facts=[large(TWO, bytes(700_000))]))
    assert len(list(BlobObjects(url))) == 1
    assert len(list(BlobObjects(f"{url}/tenants/acme"))) == 1
    pool.clear()


def test_up_takes_the_place_as_a_flag(url: str, bucket: ObjectServer, tmp_path: Path):
    words = [sys.executable, "-m", "playhead_cli", "up", "--http-port", "0", "--grpc-port", "0"]
    words += ["--query-port", "0", "--json", "--data-dir", str(tmp_path), "--blobs", url]
    with Process(words, stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        assert json.loads(up.stdout.readline())["data_dir"] == str(tmp_path)
        up.terminate()
        assert up.wait(60) == 0
    store = open_store(tmp_path)
    store.commit(Batch(facts=[large(ONE, bytes(600_000))]))
    store.close()
    assert len(list(BlobObjects(url))) == 1
