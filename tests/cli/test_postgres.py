"""The command line on a store in PostgreSQL."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers.postgres import PostgresServer
from support.starting.cli import CommandLine, refund
from support.tapes.batches import span_of

from playhead_receiver.config.configuration import Addresses, Configuration, Storage
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    running.start()
    yield running
    running.remove()


def test_what_a_receiver_took_is_listed_shown_searched_checked_exported_and_deleted(
    server: PostgresServer, playhead: CommandLine, tmp_path: Path
):
    url = f"{server.url()}&schema=cli"
    made = refund()
    span = span_of(b"s" * 16, 1, name="standing", long="a needle, 請退還訂單, คืนเงิน " + "x " * 400)
    with Receiver(
        playhead.data_dir,
        Configuration(Addresses(http_port=0, grpc_port=None), storage=Storage(url=url)),
    ) as receiver:
        receiver.store.commit(Batch(made.spans, made.facts))
        request = urllib.request.Request(
            f"{receiver.http_endpoint}/v1/traces",
            span_of_request(span.otlp),
            {"content-type": "application/x-protobuf"},
        )
        assert urllib.request.urlopen(request).status == 200
        assert not (playhead.data_dir / "store.sqlite").exists()
    on = ("--store", url)
    listed = playhead("ls", "--json", *on)
    names = [one["name"] for one in json.loads(listed.out)["runs"]]
    assert sorted(names) == ["refund-1", "refund-2"]
    assert "gpt-4o" in playhead("show", "refund-1", *on).out
    for words in ("needle", "訂單", "เงิน"):
        found = playhead("search", words, *on)
        assert (found.status, len(found.lines)) == (0, 1)
    checked = playhead("verify", *on)
    assert (checked.status, checked.out) == (0, "")
    assert "postgresql://" in checked.err and "postgres@" not in checked.err
    tape = tmp_path / "run.tape"
    assert playhead("export", "refund-1", "-o", str(tape), *on).status == 0
    assert tape.stat().st_size > 1000
    assert "pg_dump" in playhead("backup", str(tmp_path / "copy"), *on).err
    assert "PostgreSQL's own tools" in playhead("restore", str(tmp_path / "copy"), *on).err
    deleted = playhead("gc", "--success", "0s", "--failure", "0s", "--yes", *on)
    assert "deleted 2 runs" in deleted.err
    assert "VACUUM" in deleted.err
    assert playhead("verify", *on).status == 0


def span_of_request(resource_spans: bytes) -> bytes:
    """An OTLP request of one entry."""
    size, head = len(resource_spans), bytearray(b"\x0a")
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + resource_spans
