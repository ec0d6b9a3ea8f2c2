"""OTLP/gRPC as the specification has it, against a real receiver on loopback."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import zstandard
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.servers.bombs import grpc_status
from support.tapes.batches import span_of
from support.tapes.handmade import INSTANCE, HandMade

from playhead_core.otlp import pack, pack_resource, resource_logs
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.ingest.encodings import MAX_BYTES
from playhead_receiver.server import Receiver

TRACE = b"t" * 16
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

Send = Callable[..., bytes]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0))) as running:
        yield running


@pytest.fixture
def send(receiver: Receiver) -> Iterator[Send]:
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(receiver.grpc_endpoint, options) as channel:

        def call(method: str, request: bytes, **kwargs: Any) -> bytes:
            return channel.unary_unary(method)(request, timeout=60, **kwargs)

        yield call


def request_of(*spans: bytes) -> bytes:
    entries = [ResourceSpans.FromString(span) for span in spans]
    return ExportTraceServiceRequest(resource_spans=entries).SerializeToString()


def status_of(problem: Any) -> Status:
    for key, value in problem.trailing_metadata():
        if key == "grpc-status-details-bin":
            return Status.FromString(value)
    raise AssertionError("no status details")


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_spans_are_stored_when_the_answer_comes(receiver: Receiver, send: Send, compression: Any):
    span = span_of(TRACE, 1, text="é" * 5000)
    answer = send(TRACES, request_of(span.otlp), compression=compression)
    assert answer == b""
    assert list(receiver.store.spans(TRACE)) == [span]


def test_facts_and_metrics(receiver: Receiver, send: Send):
    made = HandMade().start()
    made.chat()
    logs = resource_logs(pack_resource(INSTANCE, {}), pack(made.facts))
    assert send(LOGS, ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()) == b""
    assert list(receiver.store.tape(INSTANCE).facts()) == made.facts
    metrics = ExportMetricsServiceRequest()
    metric = metrics.resource_metrics.add().scope_metrics.add().metrics.add(name="tokens")
    metric.gauge.data_points.add(as_int=3)
    answer = ExportMetricsServiceResponse.FromString(send(METRICS, metrics.SerializeToString()))
    assert answer.partial_success.rejected_data_points == 1
    assert "no destination" in answer.partial_success.error_message


def test_one_bad_span_among_good_ones_is_rejected_alone(receiver: Receiver, send: Send):
    good = span_of(TRACE, 1)
    bad = ResourceSpans.FromString(span_of(TRACE, 2).otlp)
    bad.scope_spans[0].spans[0].trace_id = bytes(16)
    answer = send(TRACES, request_of(good.otlp, bad.SerializeToString()))
    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    assert (partial.rejected_spans, partial.error_message) == (1, "trace_id is all zeros")
    assert list(receiver.store.spans(TRACE)) == [good]


@pytest.mark.parametrize("method", [TRACES, LOGS, METRICS])
def test_malformed_bytes_are_an_invalid_argument(send: Send, method: str):
    with pytest.raises(grpc.RpcError) as caught:
        send(method, b"\x0a\xff\xff")
    problem: Any = caught.value
    assert problem.code() is grpc.StatusCode.INVALID_ARGUMENT
    status = status_of(problem)
    assert status.code == code_pb2.INVALID_ARGUMENT
    assert status.message == problem.details()
    assert status.details[0].Unpack(BadRequest())


def test_a_span_of_six_megabytes_is_kept_whole(receiver: Receiver, send: Send):
    span = span_of(TRACE, 1, text="0123456789abcdef" * 400_000)
    assert send(TRACES, request_of(span.otlp)) == b""
    assert list(receiver.store.spans(TRACE)) == [span]


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_more_than_the_limit_is_refused_for_good(send: Send, compression: Any):
    with pytest.raises(grpc.RpcError) as caught:
        send(TRACES, bytes(MAX_BYTES + 1), compression=compression)
    problem: Any = caught.value
    assert problem.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "grpc-status-details-bin" not in dict(problem.trailing_metadata() or ())


def test_too_much_in_flight_is_unavailable_with_a_delay(receiver: Receiver, send: Send):
    budget = receiver.intake.budget
    budget.take(10**9)
    request = request_of(span_of(TRACE, 1).otlp)
    with pytest.raises(grpc.RpcError) as caught:
        send(TRACES, request)
    problem: Any = caught.value
    assert problem.code() is grpc.StatusCode.UNAVAILABLE
    delay = RetryInfo()
    assert status_of(problem).details[0].Unpack(delay)
    assert delay.retry_delay.seconds == 1
    budget.give_back(10**9)
    assert send(TRACES, request) == b""
    assert budget.taken_bytes == 0


def test_a_store_that_cannot_write_is_unavailable(receiver: Receiver, send: Send):
    receiver.store.close()
    with pytest.raises(grpc.RpcError) as caught:
        send(TRACES, request_of(span_of(TRACE, 1).otlp))
    problem: Any = caught.value
    assert problem.code() is grpc.StatusCode.UNAVAILABLE
    assert status_of(problem).details[0].Unpack(RetryInfo())


def test_with_a_token_only_its_bearer_may_send(tmp_path: Path):
    request = request_of(span_of(TRACE, 1).otlp)
    with (
        Receiver(
            tmp_path, Configuration(Addresses(http_port=0, grpc_port=0), Access(token="s3cret"))
        ) as receiver,
        grpc.insecure_channel(receiver.grpc_endpoint) as channel,
    ):
        export: Any = channel.unary_unary(TRACES)
        for metadata in ((), (("authorization", "Bearer other"),)):
            with pytest.raises(grpc.RpcError) as caught:
                export(request, timeout=60, metadata=metadata)
            problem: Any = caught.value
            assert problem.code() is grpc.StatusCode.UNAUTHENTICATED
        assert list(receiver.store.spans(TRACE)) == []
        assert export(request, timeout=60, metadata=(("authorization", "Bearer s3cret"),)) == b""
        assert len(list(receiver.store.spans(TRACE))) == 1


def test_grpc_itself_refuses_what_it_cannot_decompress(receiver: Receiver):
    """When it knows zstd one day, so will the receiver, and the documentation is to say so."""
    body = zstandard.compress(request_of(span_of(TRACE, 1).otlp))
    refused = grpc_status(receiver.grpc_endpoint, TRACES, body, "zstd")
    assert refused == grpc.StatusCode.INTERNAL.value[0]
    assert list(receiver.store.spans(TRACE)) == []
