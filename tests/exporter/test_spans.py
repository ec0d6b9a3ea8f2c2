"""Finished spans: whole or without what can be derived, sampled or not, bounded in bytes."""

import pytest
from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcStock
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpStock
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.util._importlib_metadata import entry_points
from support.servers.endpoints import Reply, grpc_endpoint, http_endpoint
from support.tapes.spools import tape_exporter_for, tape_of

from playhead_exporter.shipping.requests import REQUEST_BYTES
from playhead_exporter.span_exporter import ByteBounded, PlayheadSpanExporter
from playhead_semconv import attributes as a

CONTENT = {"gen_ai.input.messages": "[1]", "gen_ai.output.messages": "[2]"}
DERIVABLE = {
    **CONTENT,
    "gen_ai.request.model": "gpt-4o",
    a.PLAYHEAD_EXCHANGE_REF: "00/0000000000000007/http/0",
    a.PLAYHEAD_WIRE: "openai.chat",
    a.PLAYHEAD_DERIVED: list(CONTENT),
    a.PLAYHEAD_RESTS_ON: 4,
}


class Unsampled(Sampler):
    """Recorded, but not sampled: what playhead makes of a drop."""

    def should_sample(self, context, trace_id, name, kind=None, attributes=None, *rest, **options):
        return SamplingResult(Decision.RECORD_ONLY, attributes)

    def get_description(self):
        return "unsampled"


def provider(processor, **options):
    found = TracerProvider(
        resource=Resource({"service.name": "refund"}), shutdown_on_exit=False, **options
    )
    found.add_span_processor(processor)
    return found


def one_span(tape_exporter, settings, attributes, **options):
    tracer = provider(tape_exporter.span_processor, **options).get_tracer("tests", "1.2")
    with tracer.start_as_current_span("chat", kind=trace.SpanKind.CLIENT, attributes=attributes) as span:
        span.add_event("first", {"n": 1})
    (record,) = tape_of(tape_exporter)
    resource = ResourceSpans.FromString(record.otlp)
    (scope,) = resource.scope_spans
    (encoded,) = scope.spans
    return resource, scope, encoded


def names(encoded):
    return {pair.key for pair in encoded.attributes}


def test_a_span_leaves_out_what_its_exchange_tells(settings):
    with tape_exporter_for(settings) as tape_exporter:
        resource, scope, encoded = one_span(tape_exporter, settings, DERIVABLE)
    assert names(encoded) == set(DERIVABLE) - set(CONTENT)
    assert (encoded.name, encoded.kind, scope.scope.name, scope.scope.version) == (
        "chat",
        3,
        "tests",
        "1.2",
    )
    assert [event.name for event in encoded.events] == ["first"]
    assert {pair.key: pair.value.string_value for pair in resource.resource.attributes} == {
        "service.name": "refund"
    }
    assert encoded.dropped_attributes_count == 0


def test_a_span_is_whole_where_the_endpoint_does_not_derive(settings):
    with tape_exporter_for(replace(settings, endpoint_kind="other")) as tape_exporter:
        _, _, encoded = one_span(tape_exporter, settings, DERIVABLE)
    assert names(encoded) == set(DERIVABLE)


@pytest.mark.parametrize("missing", [a.PLAYHEAD_EXCHANGE_REF, a.PLAYHEAD_WIRE])
def test_a_span_that_does_not_say_from_what_is_whole(settings, missing):
    attributes = {key: value for key, value in DERIVABLE.items() if key != missing}
    with tape_exporter_for(settings) as tape_exporter:
        _, _, encoded = one_span(tape_exporter, settings, attributes)
    assert names(encoded) == set(attributes)


def test_an_ordinary_span_is_what_the_stock_encoder_makes_of_it(settings):
    memory = InMemorySpanExporter()
    with tape_exporter_for(settings) as tape_exporter:
        tracers = provider(tape_exporter.span_processor)
        tracers.add_span_processor(SimpleSpanProcessor(memory))
        with tracers.get_tracer("tests").start_as_current_span("tool", attributes={"x": [1, 2]}):
            pass
        (record,) = tape_of(tape_exporter)
    stock = encode_spans(memory.get_finished_spans()).resource_spans[0]
    assert ResourceSpans.FromString(record.otlp) == stock


def test_counts_of_what_the_sdk_dropped_are_kept(settings):
    limits = SpanLimits(max_span_attributes=6)
    with tape_exporter_for(settings) as tape_exporter:
        attributes = {"a": 1, "b": 2, **DERIVABLE}
        _, _, encoded = one_span(tape_exporter, settings, attributes, span_limits=limits)
    assert encoded.dropped_attributes_count == 3


def test_a_span_is_kept_whatever_the_sampler_says(settings):
    with tape_exporter_for(settings) as tape_exporter:
        _, _, encoded = one_span(tape_exporter, settings, {"x": 1}, sampler=Unsampled())
    assert names(encoded) == {"x"}


def test_force_flush_of_the_provider_delivers(settings):
    with (
        http_endpoint() as endpoint,
        tape_exporter_for(replace(settings, endpoint=endpoint.url)) as tape_exporter,
    ):
        tracers = provider(tape_exporter.span_processor)
        tracers.get_tracer("tests").start_span("one").end()
        assert tracers.force_flush(60_000)
        assert [span.name for span in endpoint.spans()] == ["one"]


def big_spans(exporter, count=12, size=1_000_000):
    tracers = provider(SimpleSpanProcessor(InMemorySpanExporter()))
    tracer = tracers.get_tracer("tests")
    spans = []
    for n in range(count):
        span = tracer.start_span(f"span {n}", attributes={"text": "x" * size})
        span.end()
        spans.append(span)
    return exporter.export(spans)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_stock_exporter_never_sends_more_than_four_megabytes(protocol):
    kind = http_endpoint if protocol == "http" else grpc_endpoint
    with kind() as endpoint:
        if protocol == "http":
            stock = HttpStock(endpoint=f"{endpoint.url}/v1/traces")
        else:
            stock = GrpcStock(endpoint=endpoint.url, insecure=True)
        bounded = ByteBounded(stock)
        assert big_spans(bounded) is SpanExportResult.SUCCESS
        bounded.shutdown()
        assert [span.name for span in endpoint.spans()] == [f"span {n}" for n in range(12)]
        assert len(endpoint.requests) == 3
        assert max(len(got.body) for got in endpoint.requests) <= REQUEST_BYTES


def test_a_group_that_fails_does_not_stop_the_others():
    class Failing(InMemorySpanExporter):
        calls = 0

        def export(self, spans):
            self.calls += 1
            super().export(spans)
            return SpanExportResult.FAILURE if self.calls == 1 else SpanExportResult.SUCCESS

    inner = Failing()
    assert big_spans(ByteBounded(inner)) is SpanExportResult.FAILURE
    assert len(inner.get_finished_spans()) == 12


def test_our_own_span_exporter_sends_whole_spans_in_bounded_requests():
    with http_endpoint() as endpoint:
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint.url,
            "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b,other=1",
        }
        exporter = PlayheadSpanExporter(environ)
        assert big_spans(exporter) is SpanExportResult.SUCCESS
        assert exporter.force_flush()
        exporter.shutdown()
        assert [span.name for span in endpoint.spans()] == [f"span {n}" for n in range(12)]
        assert max(len(got.body) for got in endpoint.requests) <= REQUEST_BYTES
        assert {got.headers["x-key"] for got in endpoint.requests} == {"a b"}


def test_our_own_span_exporter_tries_again_and_says_what_it_could_not_send(capfd):
    with http_endpoint() as endpoint:
        environ = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{endpoint.url}/v1/traces"}
        exporter = PlayheadSpanExporter(environ)
        endpoint.replies.append(Reply(503, {"retry-after": "0"}))
        assert big_spans(exporter, 1, 10) is SpanExportResult.SUCCESS
        assert len(endpoint.requests) == 2
        endpoint.rule = lambda path, body: Reply(400)
        assert big_spans(exporter, 1, 10) is SpanExportResult.FAILURE
    assert "spans are not delivered" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("group", "name", "target"),
    [
        ("playhead_outlet", "spool", "open_tape_exporter"),
        ("opentelemetry_traces_exporter", "playhead_otlp", "PlayheadSpanExporter"),
        ("playhead_bounded_exporter", "otlp", "ByteBounded"),
    ],
)
def test_entry_points(group, name, target):
    (found,) = entry_points(group=group, name=name)
    assert found.load().__name__ == target


def test_spans_of_several_resources_keep_theirs(settings):
    """That of the latest span is kept encoded."""
    memory = InMemorySpanExporter()
    with tape_exporter_for(settings) as tape_exporter:
        tracers = []
        for number in range(2):
            resource = Resource({"service.name": f"agent-{number}", "n": [1, 2]}, f"http://{number}")
            found = TracerProvider(resource=resource, shutdown_on_exit=False)
            found.add_span_processor(tape_exporter.span_processor)
            found.add_span_processor(SimpleSpanProcessor(memory))
            tracers.append(found.get_tracer("tests", "1", schema_url="http://scope"))
        for number in (0, 0, 1, 0):
            tracers[number].start_span("one", attributes={"k": "v"}).end()
        kept = [ResourceSpans.FromString(record.otlp) for record in tape_of(tape_exporter)]
    assert kept == [encode_spans([span]).resource_spans[0] for span in memory.get_finished_spans()]
    assert [one.schema_url for one in kept] == ["http://0", "http://0", "http://1", "http://0"]
