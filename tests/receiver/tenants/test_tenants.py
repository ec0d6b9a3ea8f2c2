"""The stores of tenants in a data folder: whose they are, who may write, and how long they keep."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers.object_server import ObjectServer
from support.servers.postgres import PostgresServer
from support.starting.cli import refund, store_run
from support.starting.running import until
from support.tapes.batches import span_of
from support.tapes.handmade import NOW_INSTANCE, NOW_TRACE, TRACE

from playhead_core.errors import StoreBusy
from playhead_core.facts import Content, Fact
from playhead_receiver.config.configuration import Storage
from playhead_receiver.storage import Batch, Query, open_store
from playhead_receiver.storage.content.object_store import BlobObjects
from playhead_receiver.storage.retention import Policy
from playhead_receiver.storage.runs.naming import tenant_url
from playhead_receiver.storage.sqlite.schema import FILE
from playhead_receiver.tenants.backup import DRAFT, back_up
from playhead_receiver.tenants.tenants import FOLDER, Tenants

KEPT_A_MOMENT = Policy(success_s=0, failure_s=0, flagged_s=0, test_s=0)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    running.start()
    yield running
    running.remove()


def folder_of(data: Path, tenant: str) -> Path:
    return data / FOLDER / tenant


def test_a_tenants_folder_is_its_owners_alone_and_has_one_writer(tmp_path: Path):
    own = open_store(tmp_path / "data")
    tenants = Tenants(tmp_path / "data", own)
    services = tenants.services("acme")
    assert services is tenants.services("acme")
    for folder in (tmp_path / "data" / FOLDER, folder_of(tmp_path / "data", "acme")):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(StoreBusy):
        open_store(folder_of(tmp_path / "data", "acme"))
    tenants.close()
    own.close()
    open_store(folder_of(tmp_path / "data", "acme")).close()


@pytest.mark.parametrize("policy", [None, Policy(), KEPT_A_MOMENT])
def test_what_is_kept_of_a_tenant_is_bounded_as_what_is_the_folders_own(
    tmp_path: Path, policy: Policy | None
):
    store_run(tmp_path, refund(TRACE))
    store_run(folder_of(tmp_path, "acme"), refund(NOW_TRACE, NOW_INSTANCE))
    own = open_store(tmp_path)
    noted: list[tuple[str, str, str]] = []
    tenants = Tenants(tmp_path, own, Storage(policy=policy), note=lambda *what: noted.append(what))
    try:
        tenants.start()
        # Without a bound nobody needs what is there.
        assert set(tenants.open_services()) == ({""} if policy is None else {"", "acme"})
        stores = [own, tenants.services("acme").store]
        wanted = [0, 0] if policy is KEPT_A_MOMENT else [1, 1]
        until(lambda: [len(list(one.runs(Query()))) for one in stores] == wanted, f"{wanted} runs")
        gone = {("", "retention", TRACE.hex()), ("acme", "retention", NOW_TRACE.hex())}
        assert set(noted) == (gone if policy is KEPT_A_MOMENT else set())
    finally:
        tenants.close()
        own.close()


def test_a_tenants_store_is_indexed_unless_nobody_is_to_search(tmp_path: Path):
    own = open_store(tmp_path / "own")
    for search in (True, False):
        (tmp_path / f"{search}").mkdir()
        tenants = Tenants(tmp_path / f"{search}", own, Storage(search=search))
        store = tenants.services("acme").store
        store.commit(Batch([span_of(b"t" * 16, 1, text="wombat")]))
        if search:
            until(lambda store=store: len(store.search("wombat")) == 1, "it is found")
        services = tenants.open_services()["acme"]
        assert (services.indexer is not None) is search
        tenants.close()
    own.close()


def test_tenants_have_schemas_of_their_own(server: PostgresServer, tmp_path: Path):
    url = f"{server.url()}&schema=houses"
    own = open_store(url)
    tenants = Tenants(tmp_path, own, Storage(url))
    tenants.services("acme").store.commit(Batch([span_of(b"i" * 16, 1)]))
    assert (own.position(), tenants.services("acme").store.position()) == (0, 1)
    tenants.close()
    own.close()
    again = open_store(tenant_url(url, "acme"), read_only=True)
    assert again.position() == 1
    again.close()
    assert list(tmp_path.iterdir()) == []


def test_the_large_bodies_of_a_tenant_lie_below_those_of_the_data_folder(tmp_path: Path):
    with ObjectServer() as bucket:
        url = bucket.url("houses")
        own = open_store(tmp_path, blobs=url)
        tenants = Tenants(tmp_path, own, Storage(blobs=f"{url}/"))
        body = Content.of(os.urandom(600_000))
        fact = Fact(1, 1, "playhead.state", TRACE, body=body, instance=TRACE, seq=0)
        tenants.services("acme").store.commit(Batch(facts=[fact]))
        assert list(BlobObjects(f"{url}/{FOLDER}/acme")) == [body.digest]
        assert list(BlobObjects(url)) == []
        tenants.close()
        own.close()


def test_the_store_of_a_backup_is_moved_into_place_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """So that a backup that was cut off is none."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    store_run(data, refund())
    moved: list[str] = []
    rename = os.rename

    def seen(source: Path, target: Path) -> None:
        if Path(source).parent == copy / DRAFT:
            moved.append(Path(source).name)
        rename(source, target)

    def turned(folder: Path) -> Iterator[Path]:
        return iter(sorted(listed(folder), key=lambda part: part.name != FILE))

    listed = Path.iterdir
    monkeypatch.setattr(os, "rename", seen)
    monkeypatch.setattr(Path, "iterdir", turned)
    assert back_up(data, data, copy) == 0
    assert len(moved) > 1 and moved[-1] == FILE
