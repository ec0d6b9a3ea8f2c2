"""The stores of tenants in a data folder: whose they are, who may write, and how long they keep."""

import stat
from pathlib import Path

import pytest
from support.batches import span_of
from support.cli import refund, store_run
from support.handmade import NOW_INSTANCE, NOW_TRACE, TRACE
from support.running import until

from playhead_receiver.access.tenants import FOLDER, Tenants
from playhead_receiver.store import Batch, Query, open_store
from playhead_receiver.store.retention import Policy
from playhead_semconv.errors import StoreBusy

KEPT_A_MOMENT = Policy(success_s=0, failure_s=0, flagged_s=0, test_s=0)


def folder_of(data: Path, tenant: str) -> Path:
    return data / FOLDER / tenant


def test_a_tenants_folder_is_its_owners_alone_and_has_one_writer(tmp_path: Path):
    own = open_store(tmp_path / "data")
    tenants = Tenants(tmp_path / "data", own)
    house = tenants.house("acme")
    assert house is tenants.house("acme")
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
    tenants = Tenants(tmp_path, own, policy=policy)
    try:
        tenants.start()
        # Without a bound nobody needs what is there.
        assert set(tenants.open_houses()) == ({""} if policy is None else {"", "acme"})
        stores = [own, tenants.house("acme").store]
        wanted = [0, 0] if policy is KEPT_A_MOMENT else [1, 1]
        until(lambda: [len(list(one.runs(Query()))) for one in stores] == wanted, f"{wanted} runs")
    finally:
        tenants.close()
        own.close()


def test_a_tenants_store_is_indexed_unless_nobody_is_to_search(tmp_path: Path):
    own = open_store(tmp_path / "own")
    for search in (True, False):
        (tmp_path / f"{search}").mkdir()
        tenants = Tenants(tmp_path / f"{search}", own, search=search)
        store = tenants.house("acme").store
        store.commit(Batch([span_of(b"t" * 16, 1, text="wombat")]))
        if search:
            until(lambda store=store: len(store.search("wombat")) == 1, "it is found")
        house = tenants.open_houses()["acme"]
        assert (house.indexer is not None) is search
        tenants.close()
    own.close()
