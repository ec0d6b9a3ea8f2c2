"""An engine that offers little: who needs more is told so, who can do without goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.tapes.batches import span_of

from playhead_receiver.config.configuration import Storage
from playhead_receiver.maintenance.background import MaintenanceThread
from playhead_receiver.maintenance.jobs import Collect, Delete, Rederive, Unindex, execute
from playhead_receiver.storage import Batch, Store, open_store
from playhead_receiver.storage.api.maintenance import (
    Backup,
    CallDerivation,
    FrameCompaction,
    LogEmptying,
    SharedMaintenance,
    Statistics,
    Summaries,
    Verification,
)
from playhead_receiver.storage.api.retention import Ageing, History, Retention
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import NotOffered, needed, offered
from playhead_receiver.storage.retention import Policy
from playhead_receiver.tenants.backup import back_up
from playhead_receiver.tenants.tenants import Tenants

PARTS = (
    *(Ageing, Backup, CallDerivation, FrameCompaction, LogEmptying, Retention, Search),
    *(SharedMaintenance, Statistics, Summaries, Verification),
)


def only_a_store(whole: Any) -> Any:
    """What keeps and reads as ``whole`` does, and offers nothing else."""
    names = [name for name in vars(Store) if not name.startswith("_")]
    return type("Plain", (), {name: staticmethod(getattr(whole, name)) for name in names})()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    whole = open_store(tmp_path / "data")
    whole.commit(Batch([span_of(b"t" * 16, 1)]))
    yield only_a_store(whole)
    whole.close()


def test_the_engine_of_a_folder_offers_all_but_company(tmp_path: Path):
    store = open_store(tmp_path)
    assert [part.__name__ for part in PARTS if offered(store, part) is None] == ["SharedMaintenance"]
    store.close()


@pytest.mark.parametrize("part", PARTS)
def test_what_is_not_offered_is_named(store: Any, part: type, tmp_path: Path):
    assert offered(store, part) is None
    with pytest.raises(NotOffered) as caught:
        needed(store, part)
    words = {"CallDerivation": "call derivation", "FrameCompaction": "frame compaction"}
    words |= {"LogEmptying": "log emptying", "SharedMaintenance": "shared maintenance"}
    wanted = words.get(part.__name__, part.__name__.lower())
    assert caught.value.what == f"the store {tmp_path / 'data' / 'store.sqlite'} offers no {wanted}"


@pytest.mark.parametrize(
    ("job", "what"),
    [
        (Collect(Policy()), "retention"),
        (Unindex(), "search"),
        (Rederive(["74" * 16]), "call derivation"),
        (Delete(["last"]), "retention"),
    ],
    ids=["collect", "unindex", "rederive", "delete"],
)
def test_a_job_that_the_engine_cannot_do_is_refused(store: Any, job: Any, what: str):
    with pytest.raises(NotOffered, match=f"offers no {what}$"):
        execute(store, job, lambda by, trace_id: None)


def test_housekeeping_leaves_out_what_is_not_offered_and_refuses_what_is_asked_for(
    store: Any, tmp_path: Path
):
    maintenance = MaintenanceThread(store, tmp_path)
    assert maintenance.turn() > 0 and maintenance.problem == ""
    with pytest.raises(NotOffered, match=r"offers no retention$"):
        MaintenanceThread(store, tmp_path, policy=Policy())
    with pytest.raises(NotOffered, match=r"offers no ageing$"):
        MaintenanceThread(store, tmp_path, history=History())


def test_a_receiver_that_is_to_search_needs_a_store_that_can(store: Any, tmp_path: Path):
    with pytest.raises(NotOffered, match=r"offers no search$"):
        Tenants(tmp_path, store)
    tenants = Tenants(tmp_path, store, Storage(search=False))
    assert (tenants.own.indexer, tenants.skipped_runs()) == (None, 0)


def test_a_backup_that_is_not_offered_leaves_no_folder(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("playhead_receiver.tenants.backup.open_store", lambda *_, **__: store)
    with pytest.raises(NotOffered, match=r"offers no backup$"):
        back_up(tmp_path / "data", tmp_path / "data", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
