"""Windows at a real receiver, over HTTP and over gRPC."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
import urllib3
import zstandard
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import span_of
from support.tapes.handmade import INSTANCE, HandMade

from playhead_core.facts import Fact
from playhead_core.otlp import instance_of, pack, pack_resource, pack_window, resource_logs
from playhead_core.tape.frames import MAGIC, SpanRecord, encode
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.ingest.encodings import MAX_BYTES
from playhead_receiver.ingest.export import MOST_WINDOWS
from playhead_receiver.server import Receiver
from playhead_semconv import events as e

TRACE = b"t" * 16
RESOURCE = pack_resource(INSTANCE, {"service.name": "refund"})


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0))) as running:
        yield running


def window(*records: Any):
    facts = [record.seq for record in records if isinstance(record, Fact)]
    return pack_window(
        MAGIC + b"".join(map(encode, records)), min(facts, default=-1), max(facts, default=-1)
    )


def request(*windows: Any) -> bytes:
    return ExportLogsServiceRequest(resource_logs=[resource_logs(RESOURCE, windows)]).SerializeToString()


def post(receiver: Receiver, body: bytes) -> ExportLogsServiceResponse:
    answer = urllib3.request(
        "POST",
        f"{receiver.http_endpoint}/v1/logs",
        body=body,
        headers={"content-type": "application/x-protobuf"},
    )
    assert answer.status == 200, answer.data
    return ExportLogsServiceResponse.FromString(answer.data)


def made() -> list[Fact]:
    made = HandMade().start()
    made.chat(chunks=(b"data: a\n\n", b"data: b\n\n", b"data: [DONE]\n\n"))
    return made.exit().facts


def test_a_receiver_says_that_it_reads_them(receiver: Receiver):
    about = urllib3.request("GET", f"{receiver.http_endpoint}/v1/playhead").json()
    assert about["windows"] == 1
    with grpc.insecure_channel(receiver.grpc_endpoint) as channel:
        told = channel.unary_unary("/playhead.v1.Receiver/About")(b"", timeout=60)
    assert msgspec.json.decode(told) == about


def test_what_they_bring_is_stored_as_if_it_had_come_one_by_one(receiver: Receiver, tmp_path: Path):
    facts, span = made(), span_of(TRACE, 1, text="é" * 5000).otlp
    assert post(receiver, request(window(*facts, SpanRecord(span)))) == ExportLogsServiceResponse()
    store = receiver.store
    assert list(store.tape(INSTANCE).facts()) == facts
    (kept,) = store.spans(TRACE)
    stored = ResourceSpans.FromString(kept.otlp).scope_spans[0].spans[0]
    assert stored == ResourceSpans.FromString(span).scope_spans[0].spans[0]
    with Receiver(tmp_path / "other", Configuration(Addresses(http_port=0, grpc_port=0))) as other:
        logs = resource_logs(RESOURCE, pack(facts))
        post(other, ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString())
        assert list(other.store.tape(INSTANCE).facts()) == facts
        assert other.store.resource(INSTANCE) == store.resource(INSTANCE)


def test_links_that_come_before_their_facts_are_kept(receiver: Receiver, tmp_path: Path):
    facts = made()
    post(receiver, request(window(*facts)))
    links = receiver.store.chain(INSTANCE)
    assert links
    with Receiver(tmp_path / "other", Configuration(Addresses(http_port=0, grpc_port=0))) as other:
        for records in (links, facts):
            assert post(other, request(window(*records))) == ExportLogsServiceResponse()
        assert list(other.store.tape(INSTANCE).facts()) == facts
        assert other.store.chain(INSTANCE) == links


def test_what_comes_twice_is_stored_once(receiver: Receiver):
    body = request(window(*made(), SpanRecord(span_of(TRACE, 1).otlp)))
    for _ in range(2):
        post(receiver, body)
    logs = resource_logs(RESOURCE, pack(made()))
    post(receiver, ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString())
    assert list(receiver.store.tape(INSTANCE).facts()) == made()
    assert len(list(receiver.store.spans(TRACE))) == 1


@pytest.mark.parametrize(("known", "named"), [(b"", INSTANCE), (bytes(16), bytes(16))])
def test_a_span_gets_the_instance_that_its_provider_does_not_know(
    receiver: Receiver, known: bytes, named: bytes
):
    """What it says may bear the name of the attribute; that does not count."""
    span = span_of(TRACE, 1, text="playhead.instance", instance=known).otlp
    post(receiver, request(window(SpanRecord(span))))
    (kept,) = receiver.store.spans(TRACE)
    assert instance_of(ResourceSpans.FromString(kept.otlp).resource) == named


def test_over_grpc(receiver: Receiver):
    with grpc.insecure_channel(receiver.grpc_endpoint) as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export")
        assert export(request(window(*made())), timeout=60) == b""
    assert list(receiver.store.tape(INSTANCE).facts()) == made()


def test_one_bad_record_is_rejected_and_told_and_the_rest_is_kept(receiver: Receiver):
    bad = Fact(5, 7, "playhead.nothing", instance=INSTANCE, seq=99)
    answer = post(
        receiver,
        request(window(*made(), bad, SpanRecord(b"\xff\xff"), SpanRecord(span_of(TRACE, 1).otlp))),
    )
    assert answer.partial_success.rejected_log_records == 2
    assert "playhead.nothing" in answer.partial_success.error_message
    assert "cannot be decoded" in answer.partial_success.error_message
    assert list(receiver.store.tape(INSTANCE).facts()) == made()
    assert len(list(receiver.store.spans(TRACE))) == 1


def test_a_window_that_cannot_be_read_is_rejected_alone(receiver: Receiver):
    broken = pack_window(MAGIC, -1, -1)
    broken.body.bytes_value = b"nothing"
    answer = post(receiver, request(broken, window(*made())))
    assert answer.partial_success.rejected_log_records == 1
    assert list(receiver.store.tape(INSTANCE).facts()) == made()


def test_bombs_are_refused(receiver: Receiver):
    bomb = pack_window(MAGIC, -1, -1)
    bomb.body.bytes_value = zstandard.compress(bytes(MAX_BYTES))
    answer = post(receiver, request(bomb))
    assert "are the most" in answer.partial_success.error_message
    many = [
        window(Fact(5, 7, e.PLAYHEAD_STATE, instance=INSTANCE, seq=n)) for n in range(MOST_WINDOWS + 1)
    ]
    answer = post(receiver, request(*many))
    assert answer.partial_success.rejected_log_records == 1
    assert f"more than {MOST_WINDOWS} windows" in answer.partial_success.error_message
    assert len(list(receiver.store.tape(INSTANCE).facts())) == MOST_WINDOWS
