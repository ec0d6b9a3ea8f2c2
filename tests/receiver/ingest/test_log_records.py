"""Log records of other senders: what is stored, what is forwarded, and what the answer says."""

from __future__ import annotations

import struct
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from support.servers.otlp_server import OtlpServer
from support.tapes.log_records import record_of, request_of

from playhead_core.otlp.log_records import log_line
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.ingest import Intake
from playhead_receiver.server import Receiver
from playhead_receiver.storage import open_store

TRACE = b"t" * 16


def sent(intake: Intake, *records: LogRecord) -> ExportLogsPartialSuccess:
    answer = intake.export("logs", request_of(*records).SerializeToString()).message
    assert isinstance(answer, ExportLogsServiceResponse)
    return answer.partial_success


def test_records_without_a_trace_id_are_rejected_and_the_others_stored(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    intake = Intake(store)
    answer = sent(intake, record_of(TRACE, 1, "a"), record_of(b"", 2, "b"), record_of(bytes(16), 3, "c"))
    said = "2 log records without a trace id are not stored"
    assert (answer.rejected_log_records, answer.error_message) == (2, said)
    counted = intake.counted
    assert (counted.log_records, counted.logs_stored, counted.logs_dropped) == (3, 1, 2)
    assert sent(intake, record_of(TRACE, 1, "a")) == ExportLogsPartialSuccess()
    store.close()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trace_id": b"abc"}, "trace_id has 3 bytes instead of 16"),
        ({"span_id": b"abc"}, "span_id has 3 bytes instead of 8"),
        ({"time_unix_nano": 1 << 63}, "the time of a log record lies beyond the year 2262"),
    ],
)
def test_a_malformed_record_is_rejected_alone(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    store = open_store(tmp_path)
    bad = record_of(TRACE, 1, "bad")
    for name, value in changes.items():
        setattr(bad, name, value)
    answer = sent(Intake(store), bad, record_of(TRACE, 2, "good"))
    assert (answer.rejected_log_records, answer.error_message) == (1, said)
    assert [log_line(one.otlp).body for one in store.logs(TRACE)] == ["good"]
    store.close()


def test_foreign_events_with_names_of_facts_are_log_records(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    records = [
        record_of(TRACE, 1, {"question": "which tool"}, span=1, event="playhead.decision"),
        record_of(TRACE, 2, {"state": "planning"}, span=1, event="playhead.state"),
    ]
    assert sent(Intake(store), *records) == ExportLogsPartialSuccess()
    found = [log_line(one.otlp) for one in store.logs(TRACE)]
    assert [(one.event, one.body) for one in found] == [
        ("playhead.decision", {"question": "which tool"}),
        ("playhead.state", {"state": "planning"}),
    ]
    store.close()


def test_a_record_in_an_unusual_encoding_is_kept_byte_for_byte(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    own = record_of(TRACE, 1, "a" * 300).SerializeToString()
    # An unknown field, and a field that is repeated: the last value counts.
    odd = own + b"\xa2\x06\x03abc" + b"\x11" + struct.pack("<Q", 5)
    request = ExportLogsServiceRequest()
    scoped = request.resource_logs.add().scope_logs.add()
    scoped.log_records.add().ParseFromString(odd)
    assert Intake(store).export("logs", request.SerializeToString()).rejected == 0
    (found,) = store.logs(TRACE)
    assert found.otlp == request.resource_logs[0].SerializeToString()
    store.close()


def test_forwarded_records_are_not_rejected(tmp_path: Path) -> None:
    with OtlpServer() as with_logs, OtlpServer() as without:
        for at, (url, dropped) in enumerate(((f"{with_logs.url} logs", 0), (without.url, 1))):
            configuration = Configuration(Addresses(0, 0, 0), forward=(url,))
            with Receiver(tmp_path / str(at), configuration) as receiver:
                answer = sent(receiver.intake, record_of(TRACE, 1, "a"), record_of(b"", 2, "b"))
                assert answer.rejected_log_records == dropped
                figures = httpx.get(f"{receiver.query_endpoint}/metrics").text.splitlines()
                assert "playhead_log_records_received_total 2.0" in figures
                assert "playhead_log_records_stored_total 1.0" in figures
                assert f"playhead_log_records_dropped_total {dropped}.0" in figures
