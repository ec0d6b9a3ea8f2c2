"""What is not stored is passed on: metrics, and log records that are no facts."""

import gzip
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from support.servers.otlp_server import OtlpServer
from support.servers.scripted import Reply, ScriptedServer
from support.starting.running import until
from support.tapes.batches import span_of

from playhead_exporter.delivery import Signal
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.forward.delivery_state import BLOCK_BYTES, Outbox
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch

TAKEN = Reply([b""], 200, [("content-type", "application/x-protobuf")])
PROTOBUF = {"content-type": "application/x-protobuf"}


def metric(name: str, **attributes: str) -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    entry = request.resource_metrics.add()
    entry.resource.attributes.add(key="service.name").value.string_value = "shop"
    entry.resource.attributes.add(key="host.name").value.string_value = "secret"
    point = entry.scope_metrics.add().metrics.add(name=name).sum.data_points.add(as_int=7)
    for key, value in attributes.items():
        point.attributes.add(key=key).value.string_value = value
    exemplar = point.exemplars.add(as_int=1, trace_id=b"t" * 16, span_id=b"s" * 8)
    exemplar.filtered_attributes.add(key="user").value.string_value = "bob"
    return request


def log(*names: str) -> bytes:
    request = ExportLogsServiceRequest()
    entry = request.resource_logs.add()
    entry.resource.attributes.add(key="service.name").value.string_value = "shop"
    for name in names:
        record = entry.scope_logs.add().log_records.add(event_name=name)
        record.body.string_value = "said " * 100
        record.attributes.add(key="user").value.string_value = "bob"
        record.attributes.add(key="gen_ai.system").value.string_value = "x"
    return request.SerializeToString()


def receiver(tmp_path: Path, *forward: str, query_port: int | None = None) -> Receiver:
    return Receiver(tmp_path, Configuration(Addresses(0, 0, query_port), forward=forward))


def names(requests: list[ExportMetricsServiceRequest]) -> list[str]:
    return [
        metric.name
        for request in requests
        for entry in request.resource_metrics
        for scoped in entry.scope_metrics
        for metric in scoped.metrics
    ]


def asked(server: ScriptedServer, path: str = "/v1/metrics") -> list[ExportMetricsServiceRequest]:
    return [
        ExportMetricsServiceRequest.FromString(gzip.decompress(request.body))
        for request in server.requests
        if request.path == path
    ]


@pytest.mark.parametrize("which", ["grpc", "http"])
@pytest.mark.parametrize("onward", ["grpc", "http"])
def test_metrics_of_the_sdk_arrive_over_one_receiver_and_another(
    tmp_path: Path, which: str, onward: str
):
    with OtlpServer() as last, receiver(tmp_path / "2", last.url) as second:
        way = f"grpc://{second.grpc_endpoint}" if onward == "grpc" else second.http_endpoint
        with receiver(tmp_path / "1", way) as first:
            exporter = (
                GrpcExporter(first.grpc_endpoint, insecure=True, timeout=60)
                if which == "grpc"
                else HttpExporter(f"{first.http_endpoint}/v1/metrics", timeout=60)
            )
            reader = PeriodicExportingMetricReader(exporter, export_interval_millis=1e9)
            provider = MeterProvider([reader], Resource.create({"service.name": "shop"}))
            meter = provider.get_meter("test")
            meter.create_counter("orders").add(3, {"kind": "book"})
            meter.create_histogram("latency").record(0.25)
            assert provider.force_flush(60_000)
            provider.shutdown()
            until(lambda: last.metrics, "passed on twice")
        assert first.data_dir != second.data_dir
        assert second.intake.counted.metrics >= 2
    scoped = last.metrics[0].resource_metrics[0].scope_metrics[0]
    assert scoped.scope.name == "test"
    orders, latency = scoped.metrics
    assert orders.sum.data_points[0].as_int == 3
    assert orders.sum.data_points[0].attributes[0].value.string_value == "book"
    assert latency.histogram.data_points[0].sum == 0.25


def test_without_words_a_request_goes_as_it_came_json_too(tmp_path: Path):
    sent = metric("orders", kind="book")
    found = MessageToDict(sent)
    (point,) = found["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["sum"]["dataPoints"]
    point["exemplars"][0] |= {"traceId": (b"t" * 16).hex(), "spanId": (b"s" * 8).hex()}
    with OtlpServer() as there, receiver(tmp_path, there.url) as here:
        for content in ({"json": found}, {"content": sent.SerializeToString(), "headers": PROTOBUF}):
            count = len(there.metrics)
            answer = httpx.post(f"{here.http_endpoint}/v1/metrics", **content)  # type: ignore[arg-type]
            assert answer.status_code == 200
            until(lambda count=count: len(there.metrics) > count, "passed on")
    assert there.metrics == [sent, sent]


def test_what_a_destination_did_not_take_goes_after_a_restart(tmp_path: Path):
    answers = {"now": Reply([b""], 503)}
    with ScriptedServer() as server, ScriptedServer() as other:
        server.script([lambda _: answers["now"]], repeat=True)
        other.script([TAKEN], repeat=True)
        with receiver(tmp_path, server.url, other.url) as here:
            for name in ("a", "b", "c"):
                here.intake.export("metrics", metric(name).SerializeToString())
            until(lambda: names(asked(other)) == ["a", "b", "c"], "the other has it")
            until(lambda: asked(server), "asked")
        before = len(server.requests)
        answers["now"] = TAKEN
        with receiver(tmp_path, server.url):
            until(lambda: not list(tmp_path.glob("forward/*/*.metrics")), "all of it is taken")
    assert names(asked(server)[before:]) == ["a", "b", "c"]


def test_a_destination_that_takes_spans_alone_has_its_spans(tmp_path: Path):
    with ScriptedServer() as server:
        server.on("/v1/traces", TAKEN, repeat=True)
        server.on("/v1/metrics", Reply([b""], 404), repeat=True)
        with receiver(tmp_path, server.url, query_port=0) as here:
            here.intake.export("metrics", metric("a").SerializeToString())
            here.store.commit(Batch([span_of(b"f" * 16, 1)]))

            def figures() -> list[str]:
                return httpx.get(f"{here.query_endpoint}/metrics").text.splitlines()

            refused = 'playhead_forward_requests_refused_total{destination="1"} 1.0'
            until(lambda: refused in figures(), "refused")
            until(lambda: 'playhead_forward_spans_total{destination="1"} 1.0' in figures(), "the span")
            none = 'playhead_forward_requests_waiting{destination="1"} 0.0'
            until(lambda: none in figures(), "what is refused waits no longer")
            assert 'playhead_forward_stuck{destination="1"} 0.0' in figures()
            assert "playhead_metrics_received_total 1.0" in figures()


def test_a_bad_request_does_not_hold_up_the_next(tmp_path: Path):
    def answer(request: Any) -> Reply:
        names_of = names([ExportMetricsServiceRequest.FromString(gzip.decompress(request.body))])
        return Reply([b""], 400) if "bad" in names_of else TAKEN

    with ScriptedServer() as server:
        server.script([Reply([b""], 503)] * 2 + [answer], repeat=True)
        with receiver(tmp_path, server.url) as here:
            for name in ("a", "bad", "b"):
                here.intake.export("metrics", metric(name).SerializeToString())
            until(lambda: ["b"] in [names([one])[-1:] for one in asked(server)], "went on")


def test_words_of_a_destination_count_for_metrics_too(tmp_path: Path):
    with OtlpServer() as there:
        words = f"{there.url} drop=user,host.name keep=gen_ai.* limit=64"
        with receiver(tmp_path, words) as here:
            request = metric("orders", user="bob", kind="k" * 100)
            here.intake.export("metrics", request.SerializeToString())
            until(lambda: there.metrics, "passed on")
    (entry,) = there.metrics[0].resource_metrics
    assert [pair.key for pair in entry.resource.attributes] == ["service.name"]
    (point,) = entry.scope_metrics[0].metrics[0].sum.data_points
    assert point.as_int == 7
    assert [pair.key for pair in point.attributes] == ["kind"]
    assert point.attributes[0].value.string_value == "k" * 64 + "… [100 bytes]"
    assert not point.exemplars[0].filtered_attributes


def test_log_records_go_where_they_are_asked_for(tmp_path: Path):
    with OtlpServer() as one, OtlpServer() as two:
        words = f"{one.url} logs drop=user limit=64"
        with receiver(tmp_path, words, two.url) as here:
            here.intake.export("logs", log("gen_ai.choice", "playhead.bad", "app.said"))
            here.intake.export("metrics", metric("after").SerializeToString())
            until(lambda: one.logs and two.metrics, "passed on")
    assert two.logs == []
    records = [
        record
        for entry in one.logs[0].resource_logs
        for scoped in entry.scope_logs
        for record in scoped.log_records
    ]
    assert [record.event_name for record in records] == ["gen_ai.choice", "playhead.bad", "app.said"]
    for record in records:
        assert record.body.string_value == ("said " * 100)[:64] + "… [500 bytes]"
        assert [pair.key for pair in record.attributes] == ["gen_ai.system"]
        assert record.dropped_attributes_count == 1


def test_each_tenant_s_go_to_its_own_destination(tmp_path: Path):
    with OtlpServer() as own, OtlpServer() as acme:
        with receiver(tmp_path, own.url, f"{acme.url} tenant=acme") as here:
            here.intake.export("metrics", metric("own").SerializeToString())
            there = here.tenants.services("acme").intake
            there.export("metrics", metric("acme").SerializeToString())
            until(lambda: own.metrics and acme.metrics, "passed on")
        assert (names(own.metrics), names(acme.metrics)) == (["own"], ["acme"])


def test_a_full_queue_loses_the_oldest_and_says_how_many(tmp_path: Path):
    queue = Outbox(tmp_path, "http://h", most_bytes=3 * BLOCK_BYTES)
    for number in range(5):
        queue.put(Signal.METRICS, b"%d" % number)
    queue.put(Signal.LOGS, b"log")
    assert queue.dropped == 3
    again = Outbox(tmp_path, "http://h", most_bytes=3 * BLOCK_BYTES)
    found = again.oldest(1 << 20)
    assert [body for _, body in found] == [b"3", b"4"]
    again.put(Signal.LOGS, b"another")
    for waiting, _ in found:
        again.done(waiting)
    assert [body for _, body in again.oldest(1 << 20)] == [b"log", b"another"]
    assert Outbox(tmp_path, "http://other").oldest(1) == []
    large = Outbox(tmp_path, "http://large", most_bytes=10)
    large.put(Signal.METRICS, bytes(BLOCK_BYTES * 2))
    assert len(large) == 1
