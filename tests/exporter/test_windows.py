"""Windows of a spool on their way to endpoints that read them, and to those that do not."""

import json
import random

import grpc
import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.servers.endpoints import GrpcReply, Reply, grpc_endpoint, http_endpoint
from support.tapes.spools import chunk, state, tape_exporter_for

from playhead_core.otlp.log_records import log_line
from playhead_core.otlp_bytes import WINDOW_BYTES, scope_logs
from playhead_core.tape.frames import SpanRecord
from playhead_exporter.push import pending, push
from playhead_exporter.spool.folders import SpoolFolders

ABOUT = json.dumps({"playhead": "0", "windows": 1}).encode()

PARTLY = ExportLogsServiceResponse(
    partial_success=ExportLogsPartialSuccess(rejected_log_records=1)
).SerializeToString()


@pytest.fixture
def reader(settings):
    """An endpoint that reads windows, and the settings that lead to it."""
    with http_endpoint(windows=1) as found:
        yield found, replace(settings, endpoint=found.url)


def numbers(endpoint):
    return [fact.seq for fact in endpoint.facts()]


def test_facts_and_spans_go_in_windows(reader):
    endpoint, to = reader
    span = ResourceSpans()
    span.scope_spans.add().spans.add(name="x")
    otlp = span.SerializeToString()
    with tape_exporter_for(to) as tape_exporter:
        for n in range(20):
            tape_exporter.sink.append(chunk() if n % 2 else state(n=n))
        tape_exporter.sink.append_span(SpanRecord(otlp))
        assert tape_exporter.flush(60)
        assert tape_exporter.shipper.tally.facts == tape_exporter.shipper.own_facts == 20
        assert tape_exporter.shipper.tally.spans == 1
    assert numbers(endpoint) == list(range(20))
    assert [span for window in endpoint.windows() for span in window.spans] == [otlp]
    assert {got.path for got in endpoint.requests} == {"/v1/logs"}
    assert not any("content-encoding" in got.headers for got in endpoint.requests)


def test_log_records_of_the_program_go_with_the_facts(reader, settings, patient):
    """In windows, one by one, and from the spool of a dead process."""
    endpoint, to = reader
    entry = scope_logs(
        "app",
        time_ns=1,
        level=13,
        level_text="WARNING",
        body="b",
        named={"n": 1},
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
    )
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.append_log(entry)
        assert tape_exporter.flush(60)
        assert (tape_exporter.shipper.tally.logs, tape_exporter.shipper.tally.facts) == (1, 0)
    (otlp,) = [log for window in endpoint.windows() for log in window.logs]
    line = log_line(otlp)
    assert (line.body, line.level, line.logger, line.attributes) == ("b", 13, "app", {"n": 1})
    assert (line.trace_id, line.span_id) == ((b"t" * 16).hex(), (b"s" * 8).hex())

    with tape_exporter_for(settings) as tape_exporter:
        tape_exporter.append_log(entry)
        assert not tape_exporter.close(1)
        tape_exporter.sink.unlock()
    (left,) = pending(settings)
    assert (left.facts, left.spans, left.logs) == (0, 0, 1)
    report = push(replace(to, endpoint_kind="other"))
    assert (report.problem, report.tally.logs, report.remaining) == ("", 1, [])
    records = ExportLogsServiceRequest.FromString(endpoint.requests[-1].body).resource_logs
    assert [one.SerializeToString() for one in records] == [otlp]


def test_many_facts_go_in_windows_of_bounded_size(reader):
    endpoint, to = reader
    noise = random.Random(1).randbytes
    with tape_exporter_for(to) as tape_exporter:
        for _ in range(40):
            tape_exporter.sink.append(state(data=noise(100_000)))
        assert tape_exporter.flush(60)
    assert numbers(endpoint) == list(range(40))
    assert len(endpoint.windows()) >= 4
    assert max(len(got.body) for got in endpoint.requests) <= WINDOW_BYTES * 1.5


def test_a_record_larger_than_a_window_goes_alone(reader):
    endpoint, to = reader
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(state(n=0))
        tape_exporter.sink.append(state(text="x" * WINDOW_BYTES))
        tape_exporter.sink.append(state(n=2))
        assert tape_exporter.flush(60)
    assert numbers(endpoint) == [0, 1, 2]
    assert sum(len(window.facts) for window in endpoint.windows()) == 2


@pytest.mark.parametrize(
    "answer",
    [
        Reply(400),
        Reply(200, body=PARTLY),  # as a receiver of before
    ],
)
def test_what_is_not_taken_as_a_window_goes_one_by_one(reader, answer):
    endpoint, to = reader
    assert (
        ExportLogsServiceResponse.FromString(b"\x0a\x02\x08\x01").partial_success.rejected_log_records
        == 1
    )
    endpoint.replies.append(answer)
    endpoint.answering.clear()
    with tape_exporter_for(to) as tape_exporter:
        for n in range(5):
            tape_exporter.sink.append(state(n=n))
        endpoint.answering.set()  # and one window has them all
        assert tape_exporter.flush(60)
        tape_exporter.sink.append(state(n=5))
        assert tape_exporter.flush(60)
    refused = [got for got in endpoint.requests if b"playhead.window" in got.body]
    assert len(refused) == 1, "it is not tried again with windows"
    kept = [got for got in endpoint.requests if b"playhead.window" not in got.body]
    assert [got.taken for got in kept] == [True, True]
    assert numbers(endpoint)[-6:] == [0, 1, 2, 3, 4, 5]


def test_a_window_that_is_not_taken_now_comes_again(reader):
    endpoint, to = reader
    endpoint.replies.extend([Reply(503), Reply(how="drop")])
    with tape_exporter_for(to) as tape_exporter:
        tape_exporter.sink.append(state(n=0))
        endpoint.wait(endpoint.facts)
    assert numbers(endpoint) == [0]
    assert len({got.body for got in endpoint.requests[:3]}) == 1


def test_what_a_dead_process_left_goes_in_windows(reader, settings, patient):
    endpoint, to = reader
    with tape_exporter_for(settings) as tape_exporter:
        tape_exporter.sink.append(state(n=0))
        assert not tape_exporter.close(1)
        tape_exporter.sink.unlock()
    report = push(to)
    assert (report.problem, report.tally.facts, report.remaining) == ("", 1, [])
    assert [len(window.facts) for window in endpoint.windows()] == [1]


def test_an_endpoint_of_another_kind_is_not_asked(settings):
    with http_endpoint(windows=1) as endpoint:
        to = replace(settings, endpoint=endpoint.url, endpoint_kind="other")
        with tape_exporter_for(to) as tape_exporter:
            tape_exporter.sink.append(state(n=0))
            assert tape_exporter.flush(60)
        assert (endpoint.asked, endpoint.windows()) == (0, [])
        assert numbers(endpoint) == [0]


def test_a_receiver_is_asked_over_grpc_too(settings):
    with grpc_endpoint(ABOUT) as endpoint:
        to = replace(settings, endpoint=endpoint.url, protocol="grpc")
        with tape_exporter_for(to) as tape_exporter:
            tape_exporter.sink.append(state(n=0))
            assert tape_exporter.flush(60)
            assert not tape_exporter.span_processor._whole()
        assert [len(window.facts) for window in endpoint.windows()] == [1]


def test_a_collector_over_grpc_gets_whole_spans(settings):
    with grpc_endpoint() as endpoint:
        to = replace(settings, endpoint=endpoint.url, protocol="grpc")
        with tape_exporter_for(to) as tape_exporter:
            tape_exporter.sink.append(state(n=0))
            assert tape_exporter.flush(60)
            assert tape_exporter.span_processor._whole()
        assert endpoint.windows() == []
        assert numbers(endpoint) == [0]
        assert json.loads((SpoolFolders.of(to).spool / "endpoint").read_text()) == {endpoint.url: False}


def test_one_that_is_not_there_yet_is_asked_again(settings):
    with grpc_endpoint(ABOUT) as endpoint:
        endpoint.replies.append(GrpcReply(grpc.StatusCode.UNAVAILABLE))
        to = replace(settings, endpoint=endpoint.url, protocol="grpc")
        with tape_exporter_for(to) as tape_exporter:
            tape_exporter.sink.append(state(n=0))
            endpoint.wait(endpoint.facts)
        assert [len(window.facts) for window in endpoint.windows()] == [1]
