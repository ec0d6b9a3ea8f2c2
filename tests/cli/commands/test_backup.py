"""`playhead backup` and `restore` of a folder with tenants and tokens."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.batches import span_of
from support.tapes.handmade import TRACE

from playhead_checkpoint import Checkpoint, Lineage
from playhead_checkpoint.store.conformance import conversation
from playhead_core.facts import Content, Fact
from playhead_receiver.auth import Audit, TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, open_store
from playhead_receiver.storage.api.maintenance import StoredCheckpoints
from playhead_receiver.storage.api.store import needed


@contextmanager
def access_to(data_dir: Path) -> Generator[AccessFile]:
    file = AccessFile(data_dir)
    try:
        yield file
    finally:
        file.close()


def seen(data_dir: Path, *tokens: str) -> list[list[str] | int]:
    """The runs that each token is shown, or the status of the refusal."""
    with Receiver(
        data_dir,
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0), Access(guarded=True)),
    ) as receiver:
        found: list[list[str] | int] = []
        for token in tokens:
            headers = {"authorization": f"Bearer {token}"}
            answer = httpx.get(f"{receiver.query_endpoint}/v1/runs", headers=headers, timeout=60)
            runs = [run["name"] for run in answer.json().get("runs", ())]
            found.append(runs if answer.status_code == 200 else answer.status_code)
        return found


def test_all_tenants_come_back_and_their_tokens_let_in(playhead: CommandLine, tmp_path: Path):
    data, copy, other = playhead.data_dir, tmp_path / "copy", tmp_path / "other"
    store_run(data, refund())
    store = open_store(data / "tenants" / "acme")
    store.commit(Batch([span_of(b"a" * 16, 1, service="shop")]))
    store.close()
    with access_to(data) as file:
        book = TokenBook(file)
        own, theirs = (book.create("r", ["read"], tenant=tenant)[1] for tenant in ("", "acme"))
        revoked, gone = book.create("gone", ["admin"])
        book.revoke(revoked.id)
    before = seen(data, own, theirs, gone)
    assert before == [["refund-1"], ["shop-1"], 401]
    assert playhead("backup", str(copy)).status == 0
    assert not list(copy.glob("**/*.draft"))

    with access_to(other) as file:
        newer = TokenBook(file).create("newer", ["read"])[1]
    restored = CommandLine(other, playhead._capture)  # pyright: ignore[reportPrivateUsage]
    assert restored("restore", str(copy)).status == 0
    with access_to(data) as file, access_to(other) as again:
        assert [note.subject for note in Audit(again).notes("")] == [
            note.subject for note in Audit(file).notes("")
        ]
    assert seen(other, own, theirs, gone, newer) == [*before, before[0]]
    for path in copy.rglob("*"):
        assert not path.is_file() or own.encode() not in path.read_bytes()


def test_checkpoints_come_back_with_the_runs(playhead: CommandLine, tmp_path: Path):
    data, copy, other = playhead.data_dir, tmp_path / "copy", tmp_path / "other"
    store_run(data, refund())
    folders = (Path(), Path("tenants") / "acme")
    puts: list[Checkpoint] = []
    for folder in folders:
        with closing(needed(open_store(data / folder), StoredCheckpoints)) as store:
            puts.append(store.checkpoints().put(conversation(300), Lineage(b"r" * 16)))
    assert playhead("backup", str(copy)).status == 0
    restored = CommandLine(other, playhead._capture)  # pyright: ignore[reportPrivateUsage]
    assert restored("restore", str(copy)).status == 0
    assert restored("verify").status == 0
    for folder, put in zip(folders, puts, strict=True):
        assert stat.S_IMODE((other / folder / "checkpoints.sqlite").stat().st_mode) == 0o600
        with closing(needed(open_store(other / folder), StoredCheckpoints)) as store:
            assert store.checkpoints().state(put.id) == conversation(300)
    again = CommandLine(data, playhead._capture)  # pyright: ignore[reportPrivateUsage]
    assert "already holds a store" in again("restore", str(copy)).err


def test_damaged_checkpoints_are_said_with_their_run(playhead: CommandLine):
    name = store_run(playhead.data_dir, refund())
    with closing(needed(open_store(playhead.data_dir), StoredCheckpoints)) as store:
        store.checkpoints().put(conversation(300), Lineage(TRACE))
    with closing(sqlite3.connect(playhead.data_dir / "checkpoints.sqlite")) as database:
        database.execute("DELETE FROM node WHERE id = 1")
        database.commit()
    found = playhead("verify")
    assert found.status == 1
    assert {line.split()[0] for line in found.lines} == {"checkpoint", "node"}
    assert f"it concerns 1 run: {name}" in found.err
    gone = playhead("delete", name, "--yes", "--json")
    assert json.loads(gone.out)["deleted"]["checkpoints"] == 1


def test_what_is_damaged_keeps_nothing_else_out_of_a_backup(playhead: CommandLine, tmp_path: Path):
    store = open_store(playhead.data_dir)
    for number in (1, 2, 3):
        id, body = bytes([number]) * 16, Content.of(bytes([number]) * 600_000)
        fact = Fact(1, 1, "playhead.state", id, body=body, instance=id, seq=0)
        store.commit(Batch([span_of(id, 1)], [fact]))
    store.close()
    first, second, _ = sorted(
        path for path in (playhead.data_dir / "blobs").rglob("*") if path.is_file()
    )
    first.unlink()
    second.write_bytes(b"other")
    done = playhead("backup", str(tmp_path / "copy"))
    assert done.status == 1
    assert "2 blobs could not be read: playhead verify says whose" in done.err
    assert json.loads(playhead("backup", str(tmp_path / "2"), "--json").out)["missing_blobs"] == 2
    other = CommandLine(tmp_path / "other", playhead._capture)  # pyright: ignore[reportPrivateUsage]
    assert other("restore", str(tmp_path / "copy")).status == 0
    found = other("verify")
    assert "it concerns 2 runs" in found.err
    assert {line.partition(" ")[0] for line in found.lines} == {"blob", "facts"}


def test_a_folder_without_tokens_has_none_afterwards(playhead: CommandLine, tmp_path: Path):
    store_run(playhead.data_dir, refund())
    assert playhead("backup", str(tmp_path / "copy")).status == 0
    other = CommandLine(tmp_path / "other", playhead._capture)  # pyright: ignore[reportPrivateUsage]
    assert other("restore", str(tmp_path / "copy")).status == 0
    assert not list(tmp_path.rglob("access.sqlite"))
