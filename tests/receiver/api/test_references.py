"""Messages that a span refers to are read from folders that were named, and from nowhere else."""

import json
from pathlib import Path

import httpx
import pytest
from support.foreign_programs import read_by_another
from support.tapes.batches import span_of

from playhead_core.errors import ConfigurationError
from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_receiver.storage.content.references import References
from playhead_semconv import attributes as a

TRACE = b"r" * 16
PATH = f"/v1/spans/{TRACE.hex()}/{1:016x}/messages"
ASKED = {"role": "user", "parts": [{"type": "text", "content": "order 81?"}]}
TOLD = {"role": "assistant", "parts": [{"type": "text", "content": "sent"}]}


def test_messages_in_a_named_folder_are_read(tmp_path: Path):
    folder = tmp_path / "up loads"
    folder.mkdir()
    (folder / "in.json").write_text(json.dumps([ASKED]))
    (folder / "out.jsonl").write_text(f"{json.dumps(TOLD)}\n{json.dumps(TOLD)}\n")
    span = span_of(
        TRACE,
        1,
        **{
            a.GEN_AI_INPUT_MESSAGES_REF: (folder / "in.json").as_uri(),
            a.GEN_AI_OUTPUT_MESSAGES_REF: str(folder / "out.jsonl"),
            a.GEN_AI_TOOL_DEFINITIONS_REF: "s3://bucket/tools.json",
        },
    )
    with Receiver(
        tmp_path / "data",
        Configuration(
            Addresses(http_port=0, grpc_port=None, query_port=0),
            references=References(["", str(folder)]),
        ),
    ) as receiver:
        receiver.store.commit(Batch([span]))
        said = httpx.get(receiver.query_endpoint + PATH).json()
    assert (said["input_messages"], said["output_messages"]) == ([ASKED], [TOLD, TOLD])
    assert said["elsewhere"] == {a.GEN_AI_TOOL_DEFINITIONS: "s3://bucket/tools.json"}


def test_what_is_referred_to_is_searched(tmp_path: Path):
    (tmp_path / "in.json").write_text(json.dumps([ASKED]))
    span = span_of(TRACE, 1, **{a.GEN_AI_INPUT_MESSAGES_REF: (tmp_path / "in.json").as_uri()})
    with Receiver(
        tmp_path / "data",
        Configuration(
            Addresses(http_port=0, grpc_port=None, query_port=0),
            references=References.named(f"{tmp_path}:/nowhere"),
        ),
    ) as receiver:
        receiver.store.commit(Batch([span, span_of(TRACE, 2)]))
        while receiver.store.index():
            pass
        asked = {"q": '"order 81"'}
        (hit,) = httpx.get(f"{receiver.query_endpoint}/v1/search", params=asked).json()["hits"]
        assert (hit["span_id"], "order 81?" in hit["excerpt"]) == (f"{1:016x}", True)
        receiver.store.delete([TRACE])
        assert httpx.get(f"{receiver.query_endpoint}/v1/search", params=asked).json()["hits"] == []


def test_nothing_else_is_read(tmp_path: Path):
    folder, other = tmp_path / "uploads", tmp_path / "other"
    for one in (folder, other, tmp_path / "uploads2"):
        one.mkdir()
        (one / "in.json").write_text(json.dumps([ASKED]))
    (folder / "link.json").symlink_to(other / "in.json")
    (folder / "bad.json").write_text("no json")
    (folder / "object.json").write_text("{}")
    uris = [
        (other / "in.json").as_uri(),
        f"file://{folder}/../other/in.json",
        f"file://{folder}/%2e%2e/other/in.json",
        f"file://{folder}2/in.json",
        f"file://{folder}/link.json",
        f"file://{folder}/missing.json",
        f"file://{folder}/bad.json",
        f"file://{folder}/object.json",
        f"file://{folder}",
        f"file://host{folder}/in.json",
        f"http://127.0.0.1{folder}/in.json",
        "file:///\0",
        "http://[",
    ]
    with Receiver(
        tmp_path / "data",
        Configuration(
            Addresses(http_port=0, grpc_port=None, query_port=0), references=References([str(folder)])
        ),
    ) as receiver:
        for number, uri in enumerate(uris, 1):
            receiver.store.commit(Batch([span_of(TRACE, number, **{a.GEN_AI_INPUT_MESSAGES_REF: uri})]))
            path = f"/v1/spans/{TRACE.hex()}/{number:016x}/messages"
            said = httpx.get(receiver.query_endpoint + path).json()
            assert (said["input_messages"], said["elsewhere"]) == ([], {a.GEN_AI_INPUT_MESSAGES: uri})


def test_a_tenant_reads_none_of_it(tmp_path: Path):
    (tmp_path / "in.json").write_text(json.dumps([ASKED]))
    uri = (tmp_path / "in.json").as_uri()
    book = TokenBook(AccessFile(tmp_path / "data"))
    _, token = book.create("acme", ["read"], tenant="acme")
    with Receiver(
        tmp_path / "data",
        Configuration(
            Addresses(http_port=0, grpc_port=None, query_port=0), references=References([str(tmp_path)])
        ),
    ) as receiver:
        services = receiver.tenants.services("acme")
        services.store.commit(Batch([span_of(TRACE, 1, **{a.GEN_AI_INPUT_MESSAGES_REF: uri})]))
        headers = {"authorization": f"Bearer {token}"}
        said = httpx.get(receiver.query_endpoint + PATH, headers=headers).json()
    assert (said["input_messages"], said["elsewhere"]) == ([], {a.GEN_AI_INPUT_MESSAGES: uri})


def test_database_files_are_never_opened(tmp_path: Path):
    data = tmp_path / "data"
    span = span_of(TRACE, 1, **{a.GEN_AI_INPUT_MESSAGES_REF: (data / "store.sqlite").as_uri()})
    with Receiver(
        data,
        Configuration(
            Addresses(http_port=0, grpc_port=None, query_port=0), references=References([str(tmp_path)])
        ),
    ) as receiver:
        receiver.store.commit(Batch([span]))
        httpx.get(receiver.query_endpoint + PATH).raise_for_status()
        read_by_another(data / "store.sqlite")
        assert (data / "store.sqlite-wal").exists()


def test_a_folder_has_to_be_absolute():
    with pytest.raises(ConfigurationError, match="not absolute"):
        References(["here"])
