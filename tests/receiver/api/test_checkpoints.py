"""Checkpoints of a receiver: every store conformance asks of one, and who may do what."""

import asyncio
import socket
import threading
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from support.savers import SyncSaver
from support.servers.ports import nobody
from support.servers.postgres import PostgresServer

from playhead_checkpoint import Lineage, RemoteCheckpoints, SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver
from playhead_checkpoint.store import wire
from playhead_checkpoint.store.conformance import CheckpointConformance, conversation
from playhead_core.errors import CorruptTape, StateRefused, StoreUnavailable, UsageError
from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration, Storage
from playhead_receiver.server import Receiver

PORTS = Addresses(http_port=0, grpc_port=None, query_port=0)


class Kept:
    """A receiver, and stores of tenants in it."""

    def __init__(self, folder: Path, storage: Storage = Storage()) -> None:
        self.folder = folder
        self.token("read")  # now one is needed
        self.receiver = Receiver(folder, Configuration(PORTS, Access(guarded=True), storage))

    def token(self, *scopes: str, tenant: str = "") -> str:
        file = AccessFile(self.folder)
        try:
            return TokenBook(file).create("one", scopes or ["admin"], tenant=tenant)[1]
        finally:
            file.close()

    def store(self, *scopes: str, tenant: str = "") -> RemoteCheckpoints:
        return RemoteCheckpoints(self.receiver.query_endpoint, token=self.token(*scopes, tenant=tenant))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    running.start()
    yield running
    running.remove()


@pytest.fixture(scope="module")
def in_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    found = Kept(tmp_path_factory.mktemp("receiver"))
    with found.receiver:
        yield found


@pytest.fixture(scope="module")
def in_database(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("receiver")
    found = Kept(folder, Storage(f"{server.url()}&schema=r{uuid.uuid4().hex[:8]}"))
    with found.receiver:
        yield found


@pytest.fixture
def kept(in_folders: Kept) -> Kept:
    return in_folders


class TestInFolders(CheckpointConformance):
    @pytest.fixture(autouse=True)
    def _place(self, in_folders: Kept):
        self.kept, self.tenant = in_folders, uuid.uuid4().hex

    def open_store(self):
        return self.kept.store(tenant=self.tenant)


class TestInDatabase(CheckpointConformance):
    """One tenant for all tests: each takes many connections of the server."""

    @pytest.fixture(autouse=True)
    def _place(self, in_database: Kept):
        self.kept = in_database
        with self.open_store() as store:
            store.delete([one.id for one in store.checkpoints(limit=1_000)])

    def open_store(self):
        return self.kept.store(tenant="all")


@pytest.fixture
def tenant() -> str:
    return uuid.uuid4().hex


def test_each_scope_opens_what_it_is_for(kept: Kept, tenant: str):
    with kept.store("ingest", "read", tenant=tenant) as agent, kept.store("read", tenant=tenant) as eye:
        put = agent.put(conversation(40), Lineage(b"r" * 16))
        agent.note(put.id, {"key": "said"})
        assert eye.contents(put.id) == (put, conversation(40), {"key": "said"})
        for call in (
            lambda: eye.put(1),
            lambda: eye.note(put.id, {"other": 1}),
            lambda: eye.delete([put.id]),
            lambda: agent.delete_run(b"r" * 16),
            lambda: agent.damages(),
        ):
            with pytest.raises(StoreUnavailable, match="has no scope"):
                call()
        with kept.store("ingest", tenant=tenant) as blind, pytest.raises(StoreUnavailable):
            blind.state(put.id)
    with kept.store("control", tenant=tenant) as controller:
        assert controller.delete([put.id]).checkpoints == 1


def test_a_tenant_sees_nothing_of_another(kept: Kept, tenant: str):
    with kept.store(tenant=tenant) as one, kept.store(tenant=uuid.uuid4().hex) as other:
        put = one.put(conversation(40), Lineage(b"r" * 16, thread="t", name="n"))
        assert (other.checkpoints(), other.threads(), other.nodes([put.digest])) == ([], [], {})


def test_lists_longer_than_a_page_come_whole(kept: Kept, tenant: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("playhead_checkpoint.store.remote._PAGE", 3)
    monkeypatch.setattr(wire, "MOST_DIGESTS", 2)
    with kept.store(tenant=tenant) as store:
        for number in range(8):
            store.put(conversation(100 + number), Lineage(thread=f"t{number % 4}", name=f"{number:02}"))
        assert [one.lineage.name for one in store.checkpoints()] == [f"{n:02}" for n in range(7, -1, -1)]
        assert store.threads() == ["t0", "t1", "t2", "t3"]
        assert [one.lineage.name for one in store.of_thread("t1")] == ["05", "01"]
        last = store.checkpoints(limit=1)[0].id
    with kept.store(tenant=tenant) as store:
        assert store.state(last) == conversation(107)
        ids = [one.id for one in store.checkpoints()]
        assert store.delete(ids).checkpoints == 8


@pytest.fixture
def api(kept: Kept, tenant: str) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {kept.token(tenant=tenant)}"}
    base = f"{kept.receiver.query_endpoint}/v1"
    with httpx.Client(base_url=base, headers=headers, timeout=60) as client:
        yield client


def test_what_was_not_packed_by_a_store_is_refused(
    kept: Kept, api: httpx.Client, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sent: list[bytes] = []
    with SqliteCheckpoints(tmp_path / "c.sqlite") as local:
        write = local.write
        monkeypatch.setattr(local, "write", lambda put: sent.append(wire.write_put(put)) or write(put))
        put = local.put(conversation(500), Lineage(b"r" * 16))
    (body,), path = sent, f"/checkpoints/{put.id.hex()}"
    assert api.put(path, content=b"").status_code == 422
    for at in range(0, len(body), len(body) // 60):
        changed = body[:at] + bytes([body[at] ^ 0x55]) + body[at + 1 :]
        assert api.put(path, content=changed).status_code in (409, 422), at
        assert api.put(path, content=body[:at]).status_code == 422
    refused = api.put(f"/checkpoints/{'0' * 32}", content=body).json()
    assert refused["detail"] == "the checkpoint has another id"
    with kept.store(tenant=tenant) as store:
        assert store.checkpoints() == []
        assert store.damages() == []
        assert api.put(path, content=body).status_code == 200
        assert store.state(put.id) == conversation(500)
    assert api.post("/checkpoint-nodes", content=b"x" * 33).status_code == 422
    assert api.post("/checkpoint-nodes", content=b"x" * 32 * 501).status_code == 422


def test_a_checkpoint_whose_nodes_are_missing_is_sent_again_with_them(kept: Kept, tenant: str):
    with kept.store(tenant=tenant) as one, kept.store(tenant=tenant) as other:
        first = one.put(conversation(300))
        other.delete([first.id])
        then = one.put(conversation(301))
        assert other.state(then.id) == conversation(301)
        assert other.damages() == []


def test_a_request_that_is_too_large_is_refused(
    kept: Kept, api: httpx.Client, tenant: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(wire, "LARGEST_BODY_BYTES", 1 << 16)
    assert api.put(f"/checkpoints/{'0' * 32}", content=b"x" * 70_000).status_code == 413
    with kept.store(tenant=tenant) as store, pytest.raises(StateRefused, match="at most 65536 bytes"):
        store.put(conversation(5_000))


def test_a_receiver_that_is_gone_or_closed_says_so(kept: Kept, tenant: str):
    with (
        RemoteCheckpoints(nobody(), token="secret") as store,
        pytest.raises(StoreUnavailable) as problem,
    ):
        store.put(1)
    assert "secret" not in str(problem.value)
    store = kept.store(tenant=tenant)
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="is closed"):
        store.put(1)
    with pytest.raises(UsageError, match="no address"):
        RemoteCheckpoints("receiver:4319")


ANSWERS = (
    b"",
    b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\ncontent-length: 100000000000\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\x92\xc0",
    b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n\xc1",
    b"HTTP/1.1 302 Found\r\nlocation: http://other\r\ncontent-length: 0\r\n\r\n",
    b"\x00" * 100_000,
)


@pytest.mark.parametrize("said", ANSWERS)
def test_a_server_that_is_no_receiver_is_not_believed(said: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wire, "LARGEST_BODY_BYTES", 1 << 16)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # a client that has heard enough hangs up
                connection.recv(1 << 16)
                connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with RemoteCheckpoints(f"http://127.0.0.1:{listener.getsockname()[1]}") as store:
            calls: list[Callable[[], object]] = [
                lambda: store.put(conversation(100)),
                lambda: store.state(b"x" * 16),
                lambda: store.notes(b"x" * 16),
                lambda: store.nodes([b"x" * 32]),
                store.checkpoints,
                store.threads,
                lambda: store.delete([b"x" * 16]),
            ]
            for call in calls:
                with pytest.raises((StoreUnavailable, CorruptTape)):
                    call()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("saver", "place"),
    [
        (PlayheadSaver, "in_folders"),
        (SyncSaver, "in_folders"),
        (PlayheadSaver, "in_database"),
        (SyncSaver, "in_database"),
    ],
)
def test_every_capability_of_langgraph_conforms(
    place: str, saver: Callable[[Any], PlayheadSaver], request: pytest.FixtureRequest
):
    kept: Kept = request.getfixturevalue(place)
    tenant = uuid.uuid4().hex

    @checkpointer_test(name="playhead")
    async def registered() -> AsyncGenerator[PlayheadSaver, None]:
        with kept.store(tenant=tenant) as store:
            yield saver(store)
            assert store.damages() == []

    report = asyncio.run(validate(registered))
    failures = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert failures == {}
    assert len(report.results) == 8


def test_a_saver_opens_a_receiver_by_its_url(in_folders: Kept, monkeypatch: pytest.MonkeyPatch):
    """It finds the token in the environment, and is refused at once if it could not put or read."""
    url, thread = in_folders.receiver.query_endpoint, f"opened {uuid.uuid4()}"
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    for scopes in ([], ["read"], ["ingest"]):
        monkeypatch.setenv("PLAYHEAD_TOKEN", in_folders.token(*scopes) if scopes else "")
        with pytest.raises(StoreUnavailable, match="refuses"):
            PlayheadSaver(url)
    monkeypatch.setenv("PLAYHEAD_TOKEN", in_folders.token("read", "ingest"))
    with PlayheadSaver.from_conn_string(url) as saver:
        before = in_folders.store("read").checkpoints()
        saver.setup()
        saver.put(
            config, empty_checkpoint() | {"channel_values": {"n": 1}}, {"source": "loop", "step": 1}, {}
        )
        assert len(in_folders.store("read").checkpoints()) == len(before) + 1
    with PlayheadSaver(url) as saver:
        found = saver.get_tuple(config)
        assert found is not None and found.checkpoint["channel_values"] == {"n": 1}
