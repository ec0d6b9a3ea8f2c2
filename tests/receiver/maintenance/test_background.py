"""The running receiver keeps its store in order, and does what others at its data folder ask of it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from conformance.suite.history import SERVICE, Service, commit
from support.leftovers import finds
from support.tapes.batches import as_if_come_then, span_of

from playhead_core.errors import StoreError
from playhead_receiver.auth import Audit, TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration, Storage
from playhead_receiver.maintenance import background, jobs
from playhead_receiver.maintenance.background import MaintenanceThread
from playhead_receiver.maintenance.jobs import Collect, Mark, ReceiverGone, submit
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Lag, Query, RunStatus, open_store
from playhead_receiver.storage.api.maintenance import Summaries
from playhead_receiver.storage.api.retention import HELD, History
from playhead_receiver.storage.api.store import needed
from playhead_receiver.storage.retention import FOREVER_S, Policy
from playhead_replay.forks.workspace import under_way

DEADLINE_S = 60.0
SAID = "needle-" + os.urandom(8).hex()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def names(receiver: Receiver) -> list[str]:
    return sorted(run.name for run in receiver.store.runs(Query(mode=None)))


def deletions(folder: Path) -> list[tuple[str, str]]:
    """Who deleted which run, as the audit log has it."""
    with closing(AccessFile(folder)) as file:
        notes = Audit(file).notes("")
    return [(note.name, note.subject) for note in notes if note.action == "delete"]


def test_what_goes_next_is_known(tmp_path: Path):
    """Of three runs: the one that is held never goes, and a failure stays longer than a success."""
    now = time.time_ns()
    store = open_store(tmp_path)
    store.commit(Batch([span_of(trace(1), 1, service="well", end_ns=now)]))
    store.commit(Batch([span_of(trace(2), 1, service="failed", error=True, end_ns=now - 10**9)]))
    store.commit(Batch([span_of(trace(3), 1, service="held", end_ns=now - 2 * 10**9)]))
    store.mark(trace(3), HELD)
    arrived = {run.name: run.arrived_ns for run in store.runs(Query(mode=None))}
    store.close()
    policy = Policy(success_s=3600, failure_s=7200, agents_s={"desk": FOREVER_S})
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path, Configuration(addresses, storage=Storage(policy=policy))) as receiver:
        url = f"{receiver.query_endpoint}/v1/retention"
        until(lambda: httpx.get(url).json()["looked_ns"] is not None)
        said = httpx.get(url).json()
    assert said["policy"]["seconds"] == {
        "success": 3600,
        "failure": 7200,
        "flagged": policy.flagged_s,
        "test": policy.test_s,
        "agent:desk": None,
    }
    assert (said["held"], said["flagged"]) == (1, 0)
    over_ns = max(now, arrived["well-1"]) + 3600 * 10**9
    assert said["next"] == {"run": "well-1", "time_ns": over_ns}


def test_what_its_policy_does_not_keep_goes(tmp_path: Path):
    store = open_store(tmp_path)
    fresh = time.time_ns()
    store.commit(Batch([span_of(trace(1), 1, text=SAID), span_of(trace(2), 1, service="held")]))
    store.commit(Batch([span_of(trace(3), 1, service="fresh", end_ns=fresh)]))
    store.mark(trace(2), HELD)
    store.close()
    as_if_come_then(tmp_path)
    assert finds(tmp_path, SAID.encode())
    with closing(AccessFile(tmp_path)) as file:
        TokenBook(file).create("ci", ["read"])
    with Receiver(
        tmp_path,
        Configuration(
            Addresses(http_port=0, grpc_port=None), Access(guarded=True), Storage(policy=Policy())
        ),
    ) as receiver:
        until(lambda: names(receiver) == ["fresh-1", "held-1"])
        until(lambda: not finds(tmp_path, SAID.encode()))
        assert list(receiver.store.verify()) == []
        assert deletions(tmp_path) == [("retention", trace(1).hex())]
        receiver.store.mark(trace(2), HELD, False)
        submit(tmp_path, Collect(Policy()))
    assert deletions(tmp_path) == [("playhead gc", trace(2).hex()), ("retention", trace(1).hex())]


def test_a_run_whose_root_never_arrives_has_the_status_of_its_outermost_span(tmp_path: Path):
    """In time, and not if the parent is known to be lost with its process."""
    lost = {"parent": 9, "kind": 1}
    retried = [span_of(trace(3), 1, **lost, error=True), span_of(trace(3), 2, **lost)]
    store = open_store(tmp_path)
    store.commit(Batch([span_of(trace(1), 1, **lost), span_of(trace(1), 2, parent=1, error=True)]))
    store.commit(Batch([span_of(trace(2), 1, **lost, error=True), *retried]))
    store.commit(Batch([span_of(trace(4), 1, **lost, error=True, flags=0x100)]))
    assert needed(store, Summaries).sum_up() == 4
    asked: tuple[RunStatus, ...] = ("running", "failure")
    listed = [[run.name for run in store.runs(Query(status=one))] for one in asked]
    assert [sorted(names) for names in listed] == [
        ["refund-1", "refund-2", "refund-3", "refund-4"],
        [],
    ]
    store.close()
    as_if_come_then(tmp_path)
    with closing(open_store(tmp_path, read_only=True)) as store:
        statuses = {run.name: run.status for run in store.runs(Query())}
        assert statuses == {
            "refund-1": "success",
            "refund-2": "failure",
            "refund-3": "success",
            "refund-4": "interrupted",
        }
        for name, status in statuses.items():
            assert name in [run.name for run in store.runs(Query(status=status))]


def test_a_tenant_whom_nobody_asks_for_is_kept_to_the_policy_too(tmp_path: Path):
    folder = tmp_path / "tenants" / "acme"
    store = open_store(folder)
    store.commit(Batch([span_of(trace(1), 1, text=SAID)]))
    store.close()
    as_if_come_then(folder)
    with closing(AccessFile(tmp_path)) as file:
        TokenBook(file).create("ci", ["read"])
    (tmp_path / "tenants" / "broken").mkdir()
    (tmp_path / "tenants" / "broken" / "store.sqlite").write_bytes(b"no database" * 100)
    with Receiver(
        tmp_path,
        Configuration(
            Addresses(http_port=0, grpc_port=None), Access(guarded=True), Storage(policy=Policy())
        ),
    ):
        until(lambda: not finds(folder, SAID.encode()))
    with closing(AccessFile(tmp_path)) as file:
        assert [note.subject for note in Audit(file).notes("acme")] == [trace(1).hex()]


def test_the_policy_is_kept_to_while_something_comes_all_the_time(tmp_path: Path):
    store = open_store(tmp_path)
    store.commit(Batch([span_of(trace(1), 1)]))
    store.close()
    as_if_come_then(tmp_path)
    numbers = count(1)
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=None), storage=Storage(policy=Policy()))
    ) as receiver:

        def is_gone() -> bool:
            fresh = span_of(trace(2), next(numbers), service="fresh", end_ns=time.time_ns())
            receiver.store.commit(Batch([fresh]))
            return names(receiver) == ["fresh-1"]

        until(is_gone)


def test_what_ages_out_keeps_pace_with_what_has_come_since_the_last_turn(tmp_path: Path):
    service = Service()
    service.request(0)
    served = len(service.facts)
    for _ in range(1000):
        service.read(b"a poll")
    service.idle()
    with closing(open_store(tmp_path)) as store:
        commit(store, service.facts, 5)
        MaintenanceThread(store, tmp_path, history=History(3600.0)).turn()
        left = [fact.seq for fact in store.tape(SERVICE).facts() if fact.seq >= served]
    assert left == [len(service.facts) - 1]


def test_a_damaged_run_stops_neither_the_policy_nor_the_search(tmp_path: Path):
    store: Any = open_store(tmp_path)
    for number in (1, 2):
        for one in range(1, 6):
            store.commit(Batch([span_of(trace(number), one, text=f"said-{number}")]))
    store._writer.run(
        lambda db: db.execute("UPDATE bundle SET data = x'28b52ffd00' WHERE id = 2") and None
    )
    store.close()
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        receiver.store.commit(Batch([span_of(trace(3), 1, text="later")]))
        until(lambda: receiver.store.lag() == Lag(0, 0))
        assert len(receiver.store.search("later")) == 1
        submit(tmp_path, Collect(Policy(success_s=0)))
        assert names(receiver) == []
        assert list(receiver.store.verify()) == []


def test_folders_of_forks_go_with_their_runs_and_not_while_a_fork_is_under_way(tmp_path: Path):
    store = open_store(tmp_path)
    store.commit(Batch([span_of(trace(1), 1), span_of(trace(2), 1, service="held")]))
    store.mark(trace(2), HELD)
    store.close()
    as_if_come_then(tmp_path)
    forks = tmp_path / "forks"
    for name in ("refund-1", "held-1", "begun-x7"):
        (forks / name).mkdir(parents=True)
    with under_way(tmp_path):
        with Receiver(
            tmp_path,
            Configuration(Addresses(http_port=0, grpc_port=None), storage=Storage(policy=Policy())),
        ) as receiver:
            until(lambda: names(receiver) == ["held-1"])
        assert len(list(forks.iterdir())) == 3
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=None), storage=Storage(policy=Policy()))
    ):
        until(lambda: [one.name for one in forks.iterdir()] == ["held-1"])


def test_without_a_policy_nothing_goes_and_runs_are_summed_up(tmp_path: Path):
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        receiver.store.commit(Batch([span_of(trace(1), 1)]))
        reader = open_store(tmp_path, read_only=True)
        until(lambda: receiver.store.sum_up() == 0)
        assert [run.name for run in reader.runs(Query())] == ["refund-1"]
        reader.close()


def test_at_its_end_a_receiver_sums_up_the_last_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Otherwise each list would fold them again, until the next receiver starts."""
    monkeypatch.setattr(background, "LAST_LOOK_S", DEADLINE_S)
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path, Configuration(addresses)) as receiver:
        for number in range(1, 40):
            receiver.store.commit(Batch([span_of(trace(number), 1)]))
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as db:
        assert db.execute("SELECT count(*), sum(stale > 0) FROM run").fetchone() == (39, 0)


def test_it_is_asked_to_collect_and_to_mark(tmp_path: Path):
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        receiver.store.commit(Batch([span_of(trace(1), 1), span_of(trace(2), 1)]))
        assert submit(tmp_path, Mark("refund-1", HELD, True)).run == "refund-1"
        done = submit(tmp_path, Collect(Policy(success_s=0)))
        assert (done.deleted.runs, done.deleted.wiped) == (1, True)
        assert names(receiver) == ["refund-1"]
        with pytest.raises(StoreError, match="no run is called"):
            submit(tmp_path, Mark("nobody-1", HELD, True))
        (tmp_path / jobs.FOLDER / "x.ask").write_bytes(b"{}")
        until(lambda: (tmp_path / jobs.FOLDER / "x.answer").exists())


def test_gc_asks_the_receiver_that_runs(tmp_path: Path):
    environ = {**os.environ, "PLAYHEAD_DATA_DIR": str(tmp_path)}

    def gc(*words: str) -> str:
        command = [str(Path(sys.executable).parent / "playhead"), "gc", *words]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stderr

    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        receiver.store.commit(Batch([span_of(trace(1), 1), span_of(trace(2), 1)]))
        assert "refund-1 is held" in gc("--mark", "refund-1", "held")
        assert "deleted 1 run" in gc("--success", "1s", "--yes")
        assert names(receiver) == ["refund-1"]


def test_a_receiver_that_is_gone_is_said(tmp_path: Path):
    hold = (
        "import sys, time; from playhead_receiver.system.writer_lock import WriterLock;"
        " lock = WriterLock.take(sys.argv[1]); print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, tmp_path], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with pytest.raises(ReceiverGone):
        submit(tmp_path, Mark("refund-1", HELD, True))
    assert list((tmp_path / jobs.FOLDER).iterdir()) == []
