"""`playhead backup` and `restore` of a folder with tenants and tokens."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
from support.batches import span_of
from support.cli import CommandLine, refund, store_run

from playhead_receiver.access import Audit, TokenBook
from playhead_receiver.access.database import AccessFile
from playhead_receiver.server import Receiver
from playhead_receiver.store import Batch, open_store


@contextmanager
def access_to(data_dir: Path) -> Generator[AccessFile]:
    file = AccessFile(data_dir)
    try:
        yield file
    finally:
        file.close()


def seen(data_dir: Path, *tokens: str) -> list[list[str] | int]:
    """The runs that each token is shown, or the status of the refusal."""
    with Receiver(data_dir, http_port=0, grpc_port=None, query_port=0, guarded=True) as receiver:
        found: list[list[str] | int] = []
        for token in tokens:
            headers = {"authorization": f"Bearer {token}"}
            answer = httpx.get(f"{receiver.query_endpoint}/v1/runs", headers=headers)
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


def test_a_folder_without_tokens_has_none_afterwards(playhead: CommandLine, tmp_path: Path):
    store_run(playhead.data_dir, refund())
    assert playhead("backup", str(tmp_path / "copy")).status == 0
    other = CommandLine(tmp_path / "other", playhead._capture)  # pyright: ignore[reportPrivateUsage]
    assert other("restore", str(tmp_path / "copy")).status == 0
    assert not list(tmp_path.rglob("access.sqlite"))
