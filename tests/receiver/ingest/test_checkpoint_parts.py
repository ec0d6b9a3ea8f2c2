"""Checkpoints in parts: log records of any exporter become the checkpoints that PUT makes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceResponse,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from support.tapes.log_records import record_of, request_of

from playhead_core.errors import CheckpointUnknown
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.ingest import Intake, checkpoint_parts
from playhead_receiver.server import Receiver
from playhead_receiver.storage import open_store

RUN, SPAN, PARENT = "4f2a1111111111111111111111111111", "00f067aa0ba902b7", "f" * 32
FIRST, SECOND, THIRD = (f"{number:032x}" for number in range(1, 4))
STATE = {"messages": [{"role": "user", "content": "ø" * 5000}], "step": 1}
EVENT = "playhead.checkpoint.part"


def parts_of(
    id: str, encoding: str, whole: Any, size: int, **more: Any
) -> list[tuple[dict[str, Any], Any]]:
    """Attributes and bodies of the parts of a state, which is a text or bytes."""
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    data = whole.encode() if isinstance(whole, str) else whole
    about = {"id": id, "encoding": encoding, "sha256": hashlib.sha256(data).hexdigest(), **more}
    about["part.count"] = len(pieces)
    numbered = [{**about, "part.index": index} for index in range(len(pieces))]
    named = [{f"playhead.checkpoint.{key}": value for key, value in one.items()} for one in numbered]
    return list(zip(named, pieces, strict=True))


def export(receiver: Receiver, parts: list[tuple[dict[str, Any], Any]], *, each_alone: bool) -> None:
    """Send parts with the exporter of the SDK, as a program in a span does."""
    exporter = OTLPLogExporter(endpoint=f"{receiver.http_endpoint}/v1/logs", timeout=60)
    provider = LoggerProvider(resource=Resource.create({"service.name": "shop"}))
    processor = SimpleLogRecordProcessor if each_alone else BatchLogRecordProcessor
    provider.add_log_record_processor(processor(exporter))
    sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    around = trace.SpanContext(int(RUN, 16), int(SPAN, 16), is_remote=False, trace_flags=sampled)
    context = trace.set_span_in_context(trace.NonRecordingSpan(around))
    for attributes, body in parts:
        provider.get_logger("states").emit(
            LogRecord(event_name=EVENT, body=body, attributes=attributes, context=context)
        )
    provider.shutdown()


def test_parts_in_any_order_over_a_restart_become_the_checkpoint_of_a_put(tmp_path: Path):
    ports = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    text = msgspec.json.encode(STATE).decode()
    linked = {"parent": PARENT, "thread": "chat", "name": "1", "label": ["start"]}
    zero, one, two = parts_of(FIRST, "json", text, 2000, **linked)
    with Receiver(tmp_path, ports) as receiver:
        export(receiver, [two, zero, zero], each_alone=True)
        assert httpx.get(f"{receiver.query_endpoint}/v1/checkpoints/{FIRST}").status_code == 404
    with Receiver(tmp_path, ports) as receiver:
        export(receiver, [one, two], each_alone=True)
        data = os.urandom(300_000)
        sent = parts_of(SECOND, "bytes", data, 50_000)
        export(receiver, [*sent[::-1], sent[3]], each_alone=False)
        packed = msgspec.msgpack.encode(STATE)
        export(receiver, parts_of(THIRD, "msgpack", packed, 1 << 20), each_alone=True)

        with httpx.Client(base_url=f"{receiver.query_endpoint}/v1", timeout=60) as api:
            found = api.get("checkpoints", params={"run": RUN}).json()["checkpoints"]
            assert [checkpoint["id"] for checkpoint in found] == [THIRD, SECOND, FIRST]
            assert {checkpoint["span"] for checkpoint in found} == {SPAN}
            assert api.get(f"checkpoints/{FIRST}/state").json() == STATE
            assert api.get(f"checkpoints/{SECOND}/state").content == data
            first = found[2]
            assert {**first, **linked, "labels": ["start"]} == {**first, "label": ["start"]}
            assert first["digest"] == found[0]["digest"]

            kind, query = {"content-type": "application/json"}, {"run": RUN, "span": SPAN, **linked}
            url = f"checkpoints/{FIRST}/state"
            assert api.put(url, content=text, headers=kind, params=query).json() == first
        figures = httpx.get(f"{receiver.query_endpoint}/metrics", timeout=60).text.splitlines()
        assert "playhead_checkpoints_from_logs_total 3.0" in figures
        assert "playhead_checkpoints_from_logs_refused_total 0.0" in figures
        logs = [one.otlp for one in receiver.store.logs(bytes.fromhex(RUN))]
        assert len(logs) >= 3 + 6 + 1, "the parts stay log records of their run"


def send(intake: Intake, *parts: tuple[dict[str, Any], Any], run: bytes = b"t" * 16) -> str:
    """Send parts in one request, and return the message of its partial success."""
    records = [
        record_of(run, number, body, event=EVENT, **at) for number, (at, body) in enumerate(parts)
    ]
    answer = intake.export("logs", request_of(*records).SerializeToString()).message
    assert isinstance(answer, ExportLogsServiceResponse)
    if answer.partial_success == ExportLogsPartialSuccess():
        return ""
    assert answer.partial_success.rejected_log_records
    return answer.partial_success.error_message


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sha256": "0" * 64}, f"checkpoint {FIRST} is not stored: the SHA-256 of its parts is "),
    ({"sha256": "x"}, "playhead.checkpoint.sha256 is not 64 hexadecimal digits"),
    ({"id": "../etc"}, "playhead.checkpoint.id is not 32 hexadecimal digits"),
    ({"part.index": 2}, "playhead.checkpoint.part.index is not a number from 0 to 1"),
    ({"part.index": -1}, "playhead.checkpoint.part.index is not a number from 0 to 1"),
    ({"part.count": 5000}, "playhead.checkpoint.part.count is not a number from 1 to 4096"),
    ({"part.count": True}, "playhead.checkpoint.part.count is not a number from 1 to 4096"),
    ({"encoding": "pickle"}, "playhead.checkpoint.encoding is none of json, msgpack, bytes"),
    ({"encoding": "json"}, f"checkpoint {FIRST} is not stored: the body is not application/json: "),
    ({"label": 7}, "playhead.checkpoint.label is neither a text nor texts"),
    ({"label": "x" * 300}, f"checkpoint {FIRST} is not stored: a checkpoint cannot be stored: "),
    ({"thread": "x" * 1025}, "playhead.checkpoint.thread is not a text of at most 1024 characters"),
]


def test_a_part_that_is_wrong_is_refused_with_the_reason(tmp_path: Path):
    with closing(open_store(tmp_path)) as store:
        intake = Intake(store)
        for changes, message in REFUSED:
            changed = {f"playhead.checkpoint.{key}": value for key, value in changes.items()}
            sent = [({**at, **changed}, body) for at, body in parts_of(FIRST, "bytes", b"abcd", 2)]
            assert message in send(intake, *sent)
        with pytest.raises(CheckpointUnknown):
            store.checkpoints().checkpoint(bytes.fromhex(FIRST))


def test_parts_that_were_refused_can_be_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Refused: no trace id, more bytes than the limit, another digest; and an id that is taken."""
    first, second = parts_of(FIRST, "bytes", b"abcdef", 2), parts_of(SECOND, "bytes", b"123456", 2)
    with closing(open_store(tmp_path)) as store:
        intake = Intake(store)
        assert send(intake, *first, run=b"") == "a part of a checkpoint has no trace id (3×)"
        with monkeypatch.context() as patched:
            patched.setattr(checkpoint_parts, "LARGEST_BODY_BYTES", 5)
            assert "its parts have more than 5 bytes" in send(intake, *first)
            assert send(intake, *second[1:]) == ""
            assert "its parts have more than 5 bytes" in send(intake, second[0])
        assert send(intake, *second[:2]) == ""
        assert "the SHA-256 of its parts" in send(intake, (second[2][0], b"78"))
        assert [send(intake, part) for part in second] == ["", "", ""]
        assert store.checkpoints().state(bytes.fromhex(SECOND)) == b"123456"
        assert "another checkpoint has the id" in send(intake, *parts_of(SECOND, "bytes", b"7", 1))
        counted = intake.counted
        assert (counted.checkpoints_joined, counted.checkpoints_refused) == (1, 4)


def alone(intake: Intake, other: Intake) -> list[Intake]:
    return [intake]


def in_turn(intake: Intake, other: Intake) -> list[Intake]:
    return [intake, other]


@pytest.mark.parametrize("receivers", [alone, in_turn])
def test_interleaved_checkpoints_complete_though_little_is_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receivers: Callable[..., list[Intake]]
):
    """Also if several receivers, which share a store, each get some of the parts."""
    monkeypatch.setattr(checkpoint_parts, "MOST_SEEN", 2)
    if receivers is in_turn:
        monkeypatch.setattr(checkpoint_parts, "offered", lambda store, part: store)
    states = [b"%06d" % number for number in range(5)]
    sent = [parts_of(f"{number:032x}", "bytes", state, 2) for number, state in enumerate(states)]
    with closing(open_store(tmp_path)) as store:
        intakes = receivers(Intake(store), Intake(store))
        for index in (1, 0, 2):
            for number, parts in enumerate(sent):
                intake = intakes[(index + number) % len(intakes)]
                assert send(intake, parts[index], run=b"%016d" % (number % 2)) == ""
        found = [store.checkpoints().state(bytes.fromhex(f"{number:032x}")) for number in range(5)]
        assert found == states
