"""Deletions beside other programs that hold an older state of a database, and what its log keeps."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.foreign_programs import held_by_another
from support.leftovers import finds
from support.starting.running import until
from support.tapes.batches import span_of

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.claims import SqliteClaims
from playhead_checkpoint.claims.sqlite import FILE as CLAIMS
from playhead_checkpoint.store.protocol import Lineage
from playhead_core.errors import RunUnknown
from playhead_receiver.maintenance.background import MaintenanceThread
from playhead_receiver.storage import Batch, open_store
from playhead_receiver.storage.retention import Policy, apply
from playhead_receiver.storage.sqlite import overwriting
from playhead_receiver.storage.sqlite.checkpoint_file import CHECKPOINTS
from playhead_receiver.storage.sqlite.logs import Logs
from playhead_receiver.storage.sqlite.schema import FILE
from playhead_receiver.storage.sqlite.search import FILE as SEARCH

DATABASES = (FILE, SEARCH, CHECKPOINTS, CLAIMS)
RUN, OTHER = b"1" * 16, b"2" * 16
PLANTED = b"zyxwvutsrqp"


def open_filled(folder: Path) -> Any:
    """A store with a run that has a planted word in each of its databases."""
    store: Any = open_store(folder)
    text = PLANTED.decode()
    store.commit(Batch([span_of(RUN, 1, text=text), span_of(OTHER, 2, service="other")]))
    while store.index():
        pass
    store.checkpoints().put({"text": text}, Lineage(run=RUN))
    claims = SqliteClaims(folder)
    claims.done(claims.claim(RUN.hex(), "key", "name").attempt, PLANTED)
    claims.close()
    return store


def with_planted(folder: Path) -> set[str]:
    """The databases and logs that have the planted word, also in a compressed frame.

    Another process copies them: if this one opened and closed them, it would lose its locks on them.
    """
    found: set[str] = set()
    for path in folder.glob("*.sqlite*"):
        with TemporaryDirectory() as copy:
            subprocess.run(["cp", str(path), copy], check=True)
            if finds(Path(copy), PLANTED):
                found.add(path.name)
    return found


def turn_until(store: Any, folder: Path, reached: Callable[[set[str]], bool]) -> None:
    """Let the housekeeper take turns, without a retention policy, until the planted word is gone from
    all files but those that ``reached`` accepts.

    A turn may find a log in use by a thread of the store.
    """

    def turned() -> bool:
        MaintenanceThread(store, folder).turn()
        return reached(with_planted(folder))

    until(turned, "the logs are empty")


@pytest.mark.parametrize("name", DATABASES)
def test_a_deletion_is_complete_when_the_reader_of_a_database_has_gone(tmp_path: Path, name: str):
    store = open_filled(tmp_path)
    with held_by_another(tmp_path / name):
        assert not store.delete([RUN]).wiped
        turn_until(
            store, tmp_path, lambda held: bool(held) and all(file.startswith(name) for file in held)
        )
    turn_until(store, tmp_path, lambda held: not held)
    until(lambda: store.sweep().wiped, "nothing is left to wipe")
    store.close()


@pytest.mark.parametrize("name", DATABASES)
def test_a_store_empties_the_logs_that_it_finds(tmp_path: Path, name: str):
    store = open_filled(tmp_path)
    with held_by_another(tmp_path / name) as reader:
        assert not store.delete([RUN]).wiped
        store.close()
        reader.send_signal(signal.SIGKILL)  # so that it does not empty the log itself
    assert with_planted(tmp_path)
    open_store(tmp_path, read_only=True).close()
    assert with_planted(tmp_path)
    open_store(tmp_path).close()
    assert with_planted(tmp_path) == set()


def test_checkpoints_that_belong_to_no_run_are_gone_when_the_reader_is(tmp_path: Path):
    store = open_store(tmp_path)
    store.checkpoints().put({"text": PLANTED.decode()}, Lineage(time_ns=1))
    with held_by_another(tmp_path / CHECKPOINTS):
        assert not apply(store, Policy(budget_bytes=0), 1 << 62).wiped
    turn_until(store, tmp_path, lambda held: not held)
    store.close()


def test_checkpoints_outside_a_store_are_gone_with_the_next_write(tmp_path: Path):
    path = tmp_path / "agent.sqlite"
    with SqliteCheckpoints(path) as checkpoints:
        put = checkpoints.put({"text": PLANTED.decode()})
        with held_by_another(path):
            checkpoints.delete([put.id])
            checkpoints.put({"text": "other"})
            assert with_planted(tmp_path)
        checkpoints.put({"text": "another"})
        assert with_planted(tmp_path) == set()


def test_a_deletion_does_not_wait_for_another_program_that_writes_to_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(overwriting, "LONGEST_S", 0.0)
    store = open_filled(tmp_path)
    with held_by_another(tmp_path / SEARCH, begin="BEGIN IMMEDIATE"):
        assert not store.delete([RUN]).wiped
        assert store.resolve(OTHER.hex()).trace_id == OTHER.hex()
        with pytest.raises(RunUnknown):
            store.resolve(RUN.hex())
    turn_until(store, tmp_path, lambda held: not held)
    store.close()


def test_closing_a_store_ends_the_overwriting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(overwriting, "LONGEST_S", 0.0)
    store = open_filled(tmp_path)
    store.delete([RUN])
    store.close()
    assert with_planted(tmp_path) == set()


def test_a_log_that_was_held_before_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    outcomes: list[bool] = []
    path = tmp_path / "a.sqlite"
    (tmp_path / "a.sqlite-wal").write_bytes(b"content")
    logs = Logs({path: lambda: outcomes.pop(0)})
    monkeypatch.setattr("playhead_receiver.storage.sqlite.logs.SOON_S", -1.0)
    outcomes[:] = [False]
    assert not logs.empty_soon()
    monkeypatch.setattr("playhead_receiver.storage.sqlite.logs.SOON_S", 60.0)
    outcomes[:] = [False, True]
    assert not logs.empty_soon() and outcomes == [True]
    assert logs.empty_soon() and not outcomes
    with logs.deleting():
        outcomes[:] = [False, False, True]
    assert logs.empty_soon() and not outcomes
