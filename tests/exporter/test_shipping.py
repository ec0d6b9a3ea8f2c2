"""Delivery to endpoints that behave, and to those that do not."""

import email.utils
import gzip
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from msgspec.structs import replace
from opentelemetry import context
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.servers.endpoints import GrpcReply, Reply, grpc_endpoint, http_endpoint
from support.servers.ports import nobody
from support.tapes.spools import chunk, eventually, files, state, tape_exporter_for
from support.waits import waits

from playhead_core.errors import ConfigurationError
from playhead_core.facts import Fact
from playhead_core.tape.frames import SpanRecord
from playhead_exporter import tape_exporter as exporter_module
from playhead_exporter.delivery import Endpoint, Signal
from playhead_exporter.push import pending, push
from playhead_exporter.shipping import shipper as shipper_module
from playhead_exporter.shipping.endpoint_answers import WATCHED, About, Accepted
from playhead_exporter.shipping.http import retry_after_s
from playhead_exporter.shipping.requests import REQUEST_BYTES
from playhead_exporter.spool import SpoolFolders
from playhead_exporter.tape_exporter import DISK_AT_EXIT_S, FIRST_MEETING_S
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@pytest.fixture
def to(settings, endpoint):
    return replace(settings, endpoint=endpoint.url)


@pytest.fixture
def grpc_to(settings):
    with grpc_endpoint() as found:
        yield found, replace(settings, endpoint=found.url, protocol="grpc")


def span(name="chat", size=0, attributes=()):
    message = ResourceSpans()
    pair = message.resource.attributes.add(key="service.name")
    pair.value.string_value = "refund"
    scope = message.scope_spans.add()
    scope.scope.name = "tests"
    one = scope.spans.add(name=name, trace_id=bytes(16), span_id=bytes(8))
    pair = one.attributes.add(key="x")
    pair.value.string_value = "x" * size
    return SpanRecord(message.SerializeToString())


def numbers(endpoint):
    return [fact.seq for fact in endpoint.facts()]


def refused_status(message):
    return Status(code=3, message=message).SerializeToString()


def test_facts_and_spans_arrive_with_instance_and_resource(to, endpoint):
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk(b"one"))
        tape_exporter.sink.append_span(span())
        assert tape_exporter.flush(60)
        (fact,) = endpoint.facts()
        assert (fact.seq, fact.body.inline, fact.instance) == (0, b"one", tape_exporter.sink.instance)
        (logs,) = map(ExportLogsServiceRequest.FromString, endpoint.taken("/v1/logs"))
        resource = {p.key: p.value.string_value for p in logs.resource_logs[0].resource.attributes}
        assert resource["service.name"] == "refund"
        assert resource[a.PLAYHEAD_INSTANCE] == tape_exporter.sink.instance.hex()
        (traces,) = map(ExportTraceServiceRequest.FromString, endpoint.taken("/v1/traces"))
        resource = {p.key: p.value.string_value for p in traces.resource_spans[0].resource.attributes}
        assert resource == {
            "service.name": "refund",
            a.PLAYHEAD_INSTANCE: tape_exporter.sink.instance.hex(),
        }
        assert [one.name for one in endpoint.spans()] == ["chat"]


def test_requests_are_rarer_while_nobody_watches(to, endpoint, monkeypatch):
    """Pauses between requests, as the shipper begins them."""
    pauses = []
    pause = shipper_module.Shipper._pause
    monkeypatch.setattr(
        shipper_module.Shipper,
        "_pause",
        lambda shipper, wait_s: (pauses.append(wait_s), pause(shipper, wait_s)),
    )
    watched = {WATCHED: "0"}
    endpoint.rule = lambda path, body: Reply(headers=dict(watched))
    interval_s = to.export_interval_ms / 1000
    with tape_exporter_for(to) as tape_exporter:

        def delivered():
            tape_exporter.sink.append(chunk())
            return tape_exporter.flush(60) and pauses[-1:]

        eventually(lambda: delivered() == [shipper_module.UNWATCHED * interval_s])
        watched[WATCHED] = "1"
        eventually(lambda: delivered() == [interval_s])
        watched.clear()  # another tool, or an earlier version
        eventually(lambda: delivered() == [interval_s])


def test_requests_are_compressed_and_authorised(to, endpoint):
    with tape_exporter_for(replace(to, token="sesame")) as tape_exporter:
        tape_exporter.sink.append(chunk())
        assert tape_exporter.flush(60)
    (got,) = endpoint.requests
    assert got.headers["content-encoding"] == "gzip"
    assert got.headers["content-type"] == "application/x-protobuf"
    assert got.headers["authorization"] == "Bearer sesame"


def test_a_delivered_spool_is_empty(to, endpoint, patient):
    with tape_exporter_for(to) as tape_exporter:
        for _ in range(100):
            tape_exporter.sink.append(chunk(bytes(50_000)))
        assert tape_exporter.close(60)
        places = SpoolFolders.of(to)
        assert files(places.spool) == ["endpoint"]
        assert files(places.shared) == []
        assert numbers(endpoint) == list(range(100))


def test_a_delivered_spool_is_empty_where_the_copier_gets_its_turn_late(to, endpoint, monkeypatch):
    monkeypatch.setattr(exporter_module, "FIRST_MEETING_S", 60.0)
    turn = threading.Event()
    with tape_exporter_for(to) as tape_exporter:
        monkeypatch.setattr(tape_exporter.sink, "settle_if_free", turn.wait)
        tape_exporter.sink.append(chunk())
        assert tape_exporter.flush(60)
        late = threading.Timer(4 * exporter_module.DISK_AT_EXIT_S, turn.set)
        late.start()
        assert tape_exporter.close(60)
        assert files(SpoolFolders.of(to).shared) == []
        late.join()


def test_delivered_segments_are_deleted_while_the_process_lives(to, endpoint):
    with tape_exporter_for(to) as tape_exporter:
        for _ in range(100):
            tape_exporter.sink.append(chunk(bytes(50_000)))
        assert tape_exporter.flush(60)
        home = SpoolFolders.of(to).home(tape_exporter.sink.instance)
        last = f"{tape_exporter.sink.current.number:08d}.tape"
        eventually(lambda: not [name for name in files(home) if name.endswith(".tape") and name != last])
        assert tape_exporter.sink.segments == {tape_exporter.sink.current.number}


def test_no_request_is_longer_than_four_megabytes(to, endpoint):
    with tape_exporter_for(to) as tape_exporter:
        for n in range(60):
            tape_exporter.sink.append(state(text="x" * 190_000, n=n))
            tape_exporter.sink.append_span(span(f"span {n}", 190_000))
        assert tape_exporter.flush(60)
    assert max(len(got.body) for got in endpoint.requests) <= REQUEST_BYTES
    assert len(endpoint.requests) < 60
    assert [fact.attributes["n"] for fact in endpoint.facts()] == list(range(60))
    assert [one.name for one in endpoint.spans()] == [f"span {n}" for n in range(60)]


def test_a_single_span_beyond_the_bound_travels_alone(to, endpoint):
    with tape_exporter_for(to) as tape_exporter:
        for size in (10, REQUEST_BYTES + 10, 10):
            tape_exporter.sink.append_span(span("s", size))
        assert tape_exporter.flush(60)
    counts = [
        sum(len(scope.spans) for spans in request.resource_spans for scope in spans.scope_spans)
        for request in map(ExportTraceServiceRequest.FromString, endpoint.taken("/v1/traces"))
    ]
    assert sum(counts) == 3
    assert all(
        count == 1 for count, got in zip(counts, endpoint.requests, strict=True) if len(got.body) > 1e6
    )


def test_spans_of_one_resource_share_it(to, endpoint):
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append_span(span("a"))
        tape_exporter.sink.append_span(span("b"))
        assert tape_exporter.flush(60)
    for request in map(ExportTraceServiceRequest.FromString, endpoint.taken("/v1/traces")):
        assert len(request.resource_spans) == 1
        assert len(request.resource_spans[0].scope_spans) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(503),
        Reply(429, {"retry-after": "0"}),
        Reply(502),
        Reply(504),
        Reply(how="drop"),
        Reply(how="cut"),
    ],
    ids=["503", "429", "502", "504", "dropped", "cut"],
)
def test_what_is_retryable_is_sent_again_until_it_is_taken(to, endpoint, reply):
    endpoint.replies.extend([reply, reply])
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        endpoint.wait(lambda: len(endpoint.requests) == 3)
        endpoint.wait(lambda: numbers(endpoint) == [0])
        bodies = {got.body for got in endpoint.requests}
        assert len(bodies) == 1


def test_an_endpoint_that_hangs_is_given_up_and_asked_again(to, endpoint, monkeypatch):
    monkeypatch.setattr(shipper_module, "REQUEST_TIMEOUT_S", 0.3)
    endpoint.replies.append(Reply(how="hang"))
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        endpoint.wait(endpoint.facts)
    # Where the machine is slow, a request that was taken may be given up, too, and come again.
    assert set(numbers(endpoint)) == {0}


def test_retry_after_is_honoured(to, endpoint):
    asked = []

    def rule(path, body):
        asked.append(time.monotonic())
        return Reply(429, {"retry-after": "1"}) if len(asked) == 1 else None

    endpoint.rule = rule
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        endpoint.wait(lambda: len(endpoint.requests) == 1)
        tape_exporter.flush(0.2)
        endpoint.wait(endpoint.facts)
    assert asked[1] - asked[0] >= 1


def test_a_flush_does_not_wait_for_an_endpoint_that_asks_to_be_left_alone(to, endpoint):
    endpoint.replies.append(Reply(429, {"retry-after": "600"}))
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        endpoint.wait(lambda: len(endpoint.requests) == 1)
        assert not tape_exporter.flush(60)
        with waits() as asked:
            assert not tape_exporter.flush(60)
        assert asked == []
        assert len(endpoint.requests) == 1


def test_retry_after_is_seconds_or_a_date():
    assert retry_after_s("3") == 3
    assert retry_after_s("0.5") == 0.5
    then = int(time.time()) + 100
    before = time.time()
    left_s = retry_after_s(email.utils.formatdate(then, usegmt=True))
    assert then - time.time() <= left_s <= then - before
    assert retry_after_s(email.utils.formatdate(0, usegmt=True)) == 0
    assert retry_after_s("soon") is None
    assert retry_after_s(None) is None


def test_partial_success_is_told_once_and_not_sent_again(to, endpoint, capfd):
    partly = ExportLogsServiceResponse(
        partial_success=ExportLogsPartialSuccess(rejected_log_records=1, error_message="seq is missing")
    ).SerializeToString()
    endpoint.rule = lambda path, body: Reply(body=partly)
    with tape_exporter_for(to) as tape_exporter:
        for _ in range(3):
            tape_exporter.sink.append(chunk())
            assert tape_exporter.flush(60)
        assert tape_exporter.shipper.tally.partly_refused == 3
    assert numbers(endpoint) == [0, 1, 2]
    said = capfd.readouterr().err
    assert said == "playhead: the endpoint refused 1 log records and kept the rest: seq is missing\n"


def test_the_one_bad_record_is_put_aside_and_the_others_are_delivered(to, endpoint, capfd):
    def rule(path, body):
        if b"poison" in body:
            headers = {"content-type": "application/x-protobuf"}
            return Reply(400, headers, refused_status("poison is not allowed"))
        return None

    endpoint.rule = rule
    with tape_exporter_for(to) as tape_exporter:
        for n in range(50):
            tape_exporter.sink.append(state(text="poison" if n == 17 else "good"))
            tape_exporter.sink.append_span(span("poison" if n == 31 else f"span {n}"))
        assert tape_exporter.flush(60)
        assert (tape_exporter.shipper.tally.rejected, tape_exporter.shipper.tally.facts) == (2, 50)
    assert numbers(endpoint) == [n for n in range(50) if n != 17]
    assert [one.name for one in endpoint.spans()] == [f"span {n}" for n in range(50) if n != 31]
    folder = SpoolFolders.of(to).spool / "rejected"
    kept = files(folder)
    assert [name.split(".", 1)[1] for name in kept] == [
        "logs.otlp",
        "logs.txt",
        "traces.otlp",
        "traces.txt",
    ]
    reason = f"{endpoint.url} answered 400 at /v1/logs: poison is not allowed\n"
    assert (folder / kept[1]).read_text() == reason
    request = ExportLogsServiceRequest.FromString((folder / kept[0]).read_bytes())
    assert len(request.resource_logs[0].scope_logs[0].log_records) == 1
    assert capfd.readouterr().err.count("error[receiver-refused]: a record of") == 1


def test_a_wrong_path_is_said_and_nothing_is_thrown_away(to, endpoint, capfd):
    endpoint.rule = lambda path, body: Reply(404)
    endpoint.answering.clear()
    with tape_exporter_for(to) as tape_exporter:
        for _ in range(12):
            tape_exporter.sink.append(chunk())
        endpoint.answering.set()  # and twelve are waiting
        assert not tape_exporter.flush(60)
        assert not tape_exporter.flush(60)
        assert tape_exporter.shipper.tally.rejected == 0
        (left,) = pending(to)
    assert capfd.readouterr().err == (
        f"error[receiver-path]: {endpoint.url} answered 404 at /v1/logs\n"
        "cause: PLAYHEAD_ENDPOINT is the base address of an OTLP endpoint\n"
        "hint: 12 facts spooled, none lost: playhead doctor\n"
    )
    assert left.facts == 12


@pytest.mark.parametrize("status", [401, 403, 500, 302])
def test_other_refusals_throw_nothing_away(to, endpoint, status, capfd):
    endpoint.rule = lambda path, body: Reply(status)
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        assert not tape_exporter.flush(60)
        assert "error[receiver-refused]" in capfd.readouterr().err
        endpoint.rule = None
        assert tape_exporter.flush(60)
    assert numbers(endpoint) == [0]


def test_an_endpoint_that_comes_back_gets_everything_in_order(to, endpoint):
    endpoint.replies.extend([Reply(503)] * 2)
    with tape_exporter_for(to) as tape_exporter:
        for n in range(500):
            tape_exporter.sink.append(state(n=n))
        endpoint.wait(lambda: len(endpoint.facts()) == 500)
    assert numbers(endpoint) == list(range(500))


def test_spans_travel_whole_where_the_endpoint_is_not_playhead(settings):
    with http_endpoint(playhead=False) as other:
        to = replace(settings, endpoint=other.url)
        with tape_exporter_for(to) as tape_exporter:
            tape_exporter.sink.append(chunk())
            assert tape_exporter.flush(60)
            assert tape_exporter.span_processor._whole()
        assert json.loads((SpoolFolders.of(to).spool / "endpoint").read_text()) == {other.url: False}
        with tape_exporter_for(to) as tape_exporter:
            assert tape_exporter.span_processor._whole()


def test_what_an_endpoint_is_may_be_set(settings):
    with tape_exporter_for(replace(settings, endpoint_kind="other")) as tape_exporter:
        assert tape_exporter.span_processor._whole()
    with tape_exporter_for(replace(settings, endpoint_kind="playhead")) as tape_exporter:
        assert not tape_exporter.span_processor._whole()
    with pytest.raises(ConfigurationError, match="endpoint-kind is 'x'"):
        tape_exporter_for(replace(settings, endpoint_kind="x")).__enter__()


def test_the_endpoint_is_asked_once_what_it_is(to, endpoint):
    with tape_exporter_for(to) as tape_exporter:
        for _ in range(5):
            tape_exporter.sink.append(chunk())
            assert tape_exporter.flush(60)
    assert endpoint.asked == 1


def test_a_dead_endpoint_does_not_hold_up_the_exit(settings):
    with tape_exporter_for(settings) as tape_exporter:
        tape_exporter.sink.append(chunk())
        eventually(lambda: tape_exporter.shipper.is_accepting is False)
        with waits() as asked:
            assert not tape_exporter.close(30)
        assert max(asked, default=0.0) <= DISK_AT_EXIT_S


def test_an_endpoint_that_has_never_answered_does_not_hold_up_the_exit(to, endpoint, monkeypatch):
    endpoint.replies.append(Reply(how="hang"))
    with tape_exporter_for(replace(to, endpoint_kind="other")) as tape_exporter:
        tape_exporter.sink.append(chunk())
        started = tape_exporter.shipper._started
        monkeypatch.setattr(shipper_module, "time", SimpleNamespace(monotonic=lambda: started))
        with waits() as asked:
            assert not tape_exporter.close(30)
        assert max(asked) == FIRST_MEETING_S > DISK_AT_EXIT_S
        assert [one.facts for one in pending(to)] == [1]


def test_close_is_idempotent_and_remembers(to, endpoint, patient):
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        assert tape_exporter.close(60)
        assert tape_exporter.close(60)
        tape_exporter.sink.append(chunk())
        assert not tape_exporter.flush(0.1)


def test_grpc(grpc_to):
    endpoint, to = grpc_to
    with tape_exporter_for(replace(to, token="sesame")) as tape_exporter:
        for _ in range(100):
            tape_exporter.sink.append(chunk(bytes(60_000)))
        tape_exporter.sink.append_span(span())
        assert tape_exporter.flush(60)
    assert numbers(endpoint) == list(range(100))
    assert [one.name for one in endpoint.spans()] == ["chat"]
    assert max(len(got.body) for got in endpoint.requests) <= REQUEST_BYTES
    assert {got.headers["authorization"] for got in endpoint.requests} == {"Bearer sesame"}


def retry_info(seconds):
    detail = AnyMessage()
    detail.Pack(RetryInfo(retry_delay=Duration(nanos=int(seconds * 1e9))))
    return (("grpc-status-details-bin", Status(code=14, details=[detail]).SerializeToString()),)


@pytest.mark.parametrize(
    "reply",
    [
        GrpcReply(grpc.StatusCode.UNAVAILABLE, "later"),
        GrpcReply(grpc.StatusCode.UNAVAILABLE, "later", retry_info(0.05)),
        GrpcReply(grpc.StatusCode.RESOURCE_EXHAUSTED, "later", retry_info(0.05)),
        GrpcReply(grpc.StatusCode.DATA_LOSS, "later"),
    ],
    ids=["unavailable", "with delay", "exhausted with delay", "data loss"],
)
def test_grpc_what_is_retryable_is_sent_again(grpc_to, reply):
    endpoint, to = grpc_to
    endpoint.replies.extend([reply, reply])
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        endpoint.wait(lambda: numbers(endpoint) == [0])
    assert len(endpoint.requests) == 3


def test_grpc_the_one_bad_record_is_put_aside(grpc_to):
    endpoint, to = grpc_to
    endpoint.rule = lambda path, body: (
        GrpcReply(grpc.StatusCode.INVALID_ARGUMENT, "poison") if b"poison" in body else None
    )
    with tape_exporter_for(to) as tape_exporter:
        for n in range(20):
            tape_exporter.sink.append(state(text="poison" if n == 3 else "good"))
        assert tape_exporter.flush(60)
        assert tape_exporter.shipper.tally.rejected == 1
    assert numbers(endpoint) == [n for n in range(20) if n != 3]


def test_grpc_a_request_that_is_too_long_is_halved(grpc_to):
    endpoint, to = grpc_to
    endpoint.rule = lambda path, body: (
        GrpcReply(grpc.StatusCode.RESOURCE_EXHAUSTED, "too long") if len(body) > 100_000 else None
    )
    with tape_exporter_for(to) as tape_exporter:
        for n in range(20):
            tape_exporter.sink.append(state(text="x" * 20_000, n=n))
        assert tape_exporter.flush(60)
        assert tape_exporter.shipper.tally.rejected == 0
    assert numbers(endpoint) == list(range(20))


def test_grpc_a_small_record_is_not_too_long(grpc_to):
    endpoint, to = grpc_to
    endpoint.replies.append(GrpcReply(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota"))
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        endpoint.wait(lambda: numbers(endpoint) == [0])
        assert tape_exporter.shipper.tally.rejected == 0


def test_grpc_without_the_service(settings, capfd):
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    to = replace(settings, endpoint=f"127.0.0.1:{port}", protocol="grpc")
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk())
        assert not tape_exporter.flush(60)
    server.stop(0).wait()
    said = capfd.readouterr().err
    assert "error[receiver-path]: 127.0.0.1" in said and "UNIMPLEMENTED" in said


def test_grpc_push(grpc_to, patient):
    endpoint, to = grpc_to
    with tape_exporter_for(replace(to, endpoint=nobody())) as tape_exporter:
        tape_exporter.sink.append(chunk())
        tape_exporter.close(0)
        tape_exporter.sink.unlock()
        report = push(to)
    assert (report.problem, report.tally.facts) == ("", 1)
    assert numbers(endpoint) == [0]


@pytest.mark.parametrize(
    ("text", "protocol", "base", "logs"),
    [
        ("http://h:4318", "http/protobuf", "http://h:4318", "http://h:4318/v1/logs"),
        ("http://h:4318/", "http/protobuf", "http://h:4318", "http://h:4318/v1/logs"),
        ("http://h:4318/v1/traces", "http/protobuf", "http://h:4318", "http://h:4318/v1/logs"),
        ("https://h/otlp/v1/logs/", "http/protobuf", "https://h:443/otlp", "https://h:443/otlp/v1/logs"),
        ("http://h", "http/protobuf", "http://h:4318", "http://h:4318/v1/logs"),
        ("h:1", "grpc", "http://h:1", "http://h:1/v1/logs"),
        ("https://h", "grpc", "https://h:4317", "https://h:4317/v1/logs"),
    ],
)
def test_an_endpoint_is_a_base_or_a_full_path(text, protocol, base, logs):
    endpoint = Endpoint.parse(text, protocol)
    assert (endpoint.base, endpoint.url(Signal.LOGS)) == (base, logs)


@pytest.mark.parametrize(("text", "protocol"), [("ftp://h", "grpc"), ("http://", "grpc"), ("h", "udp")])
def test_what_is_no_endpoint_is_refused(text, protocol):
    with pytest.raises(ConfigurationError):
        Endpoint.parse(text, protocol)


def test_a_record_that_otlp_cannot_hold_does_not_stop_the_others(to, endpoint, capfd):
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(chunk(b"a"))
        tape_exporter.sink.append(Fact(-1, 7, e.PLAYHEAD_STATE))
        tape_exporter.sink.append(chunk(b"c"))
        assert tape_exporter.flush(60)
        assert tape_exporter.shipper.tally.rejected == 1
    assert [fact.body.inline for fact in endpoint.facts()] == [b"a", b"c"]
    assert capfd.readouterr().err.count("a record cannot be sent and is lost") == 1


def test_a_certificate_that_is_not_there_is_said_and_nothing_is_lost(settings, capfd, tmp_path):
    settings = replace(
        settings, endpoint="https://127.0.0.1:9", certificate=str(tmp_path / "none"), protocol="grpc"
    )
    with tape_exporter_for(settings) as tape_exporter:
        tape_exporter.sink.append(chunk())
        for _ in range(4):
            assert not tape_exporter.flush(60)
        assert [one.facts for one in pending(settings)] == [1]
    assert capfd.readouterr().err.count("No such file or directory") == 1


class Listening:
    """A transport that keeps in which context it was asked."""

    def __init__(self):
        self.suppressed = []

    def send(self, signal, request, timeout_s, *, compressed=False):
        self.suppressed.append(context.get_value(_SUPPRESS_INSTRUMENTATION_KEY))
        return Accepted()

    def about(self, timeout_s):
        self.suppressed.append(context.get_value(_SUPPRESS_INSTRUMENTATION_KEY))
        return About(True)

    def close(self):
        pass


def test_the_exporters_own_requests_are_not_instrumented(settings):
    transport = Listening()
    with tape_exporter_for(settings) as tape_exporter:
        tape_exporter._open_transport = lambda: transport
        tape_exporter.sink.append(chunk())
        assert tape_exporter.flush(60)
    assert transport.suppressed == [True, True]
    assert context.get_value(_SUPPRESS_INSTRUMENTATION_KEY) is None


def test_compression_is_worth_it(to, endpoint):
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(state(text="x" * 100_000))
        assert tape_exporter.flush(60)
    (got,) = endpoint.requests
    assert int(got.headers["content-length"]) < 2000 < len(got.body)
    assert gzip.compress(got.body, 1, mtime=0)[:2] == b"\x1f\x8b"
