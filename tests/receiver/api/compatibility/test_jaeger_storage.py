"""A client that speaks `jaeger.storage.v2`, as Jaeger's query service does, over stored runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.outside.viewers import STREAMS, Ask, jaeger, jaeger_query, spans_of
from support.tapes.batches import START_NS, span_of
from support.tapes.handmade import TRACE

from playhead_core.otlp import attributes_of, set_attributes
from playhead_receiver.api.jaeger.finding import Wanted
from playhead_receiver.api.jaeger.messages import MESSAGES
from playhead_receiver.api.jaeger.storage import CHUNK_BYTES, wanted_of
from playhead_receiver.auth import Audit, TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_semconv import attributes as a


@pytest.fixture
def ask(receiver: Receiver) -> Iterator[Ask]:
    with jaeger(receiver.grpc_endpoint) as asking:
        yield asking


def keep(receiver: Receiver, *spans: Any) -> None:
    receiver.store.commit(Batch(list(spans)))


def test_the_bytes_are_those_of_jaegers_own_messages():
    """Made by what protoc generates from Jaeger's definitions."""
    asked = MESSAGES["FindTracesRequest"].FromString(
        bytes.fromhex(
            "0a2d0a06726566756e641204636861741a0f0a056572726f7212060a047472756522060880af83c9063a020803"
            "4014"
        )
    )
    assert wanted_of(asked.query) == Wanted(
        service="refund",
        operation="chat",
        attributes={"error": "true"},
        start_min_ns=1763760000 * 10**9,
        duration_max_ns=3 * 10**9,
        depth=20,
    )
    answer = MESSAGES["FindTraceSummariesResponse"]()
    summary = answer.summaries.add(
        trace_id=b"1" * 16,
        root_service_name="front",
        root_operation_name="run",
        min_start_time_unix_nano=5,
        max_end_time_unix_nano=6,
        span_count=3,
        error_span_count=1,
        orphan_span_count=1,
    )
    summary.services.add(name="front", span_count=1)
    assert answer.SerializeToString().hex() == (
        "0a410a1031313131313131313131313131313131120566726f6e741a0372756e21050000000000000029060000"
        "0000000000"
        "3003380140014a090a0566726f6e741001"
    )


def test_a_trace_comes_whole(ask: Ask, receiver: Receiver):
    chunks = ask("GetTraces", query=[{"trace_id": TRACE}, {"trace_id": b"?" * 16}])
    spans = spans_of(*chunks)
    assert {span.trace_id for span in spans} == {TRACE}
    assert {span.span_id for span in spans} == {row.span_id for row in receiver.store.outline(TRACE)}
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano for span in spans)
    assert ask("GetTraces", query=[{"trace_id": b"?" * 16}]) == []
    assert ask("GetTraces", query=[{"trace_id": b"short"}]) == []


def test_services_and_operations(ask: Ask, receiver: Receiver):
    keep(receiver, span_of(b"1" * 16, 1, service="helper", name="plan"))
    assert set(ask("GetServices").services) >= {"helper"}
    found = ask("GetOperations", service="helper").operations
    assert [(one.name, one.span_kind) for one in found] == [("plan", "client")]
    assert list(ask("GetOperations", service="helper", span_kind="server").operations) == []
    assert list(ask("GetOperations", service="nobody").operations) == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, "123"),
        ({"service_name": "helper"}, "12"),
        ({"service_name": "helper", "operation_name": "plan"}, "1"),
        ({"attributes": [{"key": "error", "value": {"string_value": "true"}}]}, "2"),
        ({"attributes": [{"key": "size", "value": {"string_value": "7"}}]}, "3"),
        ({"attributes": [{"key": "size", "value": {"int_value": 7}}]}, "3"),
        ({"attributes": [{"key": "service.name", "value": {"string_value": "other"}}]}, "3"),
        ({"attributes": [{"key": "span.kind", "value": {"string_value": "client"}}]}, "123"),
        ({"duration_min": {"seconds": 1}}, "1"),
        ({"duration_max": {"nanos": 1000}}, "23"),
        ({"search_depth": 1}, "3"),
        ({"service_name": "helper", "attributes": [{"key": "size", "value": {"int_value": 7}}]}, ""),
    ],
)
def test_traces_are_found_by_a_span_of_theirs(ask: Ask, receiver: Receiver, wanted: Any, found: str):
    keep(
        receiver,
        span_of(b"1" * 16, 1, service="helper", name="plan", end_ns=START_NS + 2 * 10**9),
        span_of(b"2" * 16, 2, service="helper", error=True),
        span_of(b"3" * 16, 3, service="other", size=7),
    )
    window = {
        "start_time_min": {"seconds": START_NS // 10**9 - 5},
        "start_time_max": {"seconds": START_NS // 10**9 + 5},
    }
    asked = jaeger_query(**wanted, **window)
    ids = {bytes([ord(one)]) * 16 for one in found}
    assert {span.trace_id for span in spans_of(*ask("FindTraces", query=asked))} == ids
    assert {one.trace_id for one in ask("FindTraceIDs", query=asked).trace_ids} == ids
    summaries = [one for chunk in ask("FindTraceSummaries", query=asked) for one in chunk.summaries]
    assert {one.trace_id for one in summaries} == ids


def test_a_trace_is_told_in_short(ask: Ask, receiver: Receiver):
    trace = b"s" * 16
    keep(
        receiver,
        span_of(trace, 1, name="run", service="front"),
        span_of(trace, 2, parent=1, service="back", error=True),
        span_of(trace, 3, parent=9, service="back"),
    )
    [chunk] = ask("FindTraceSummaries", query=jaeger_query(service_name="back"))
    [summary] = chunk.summaries
    assert (summary.root_service_name, summary.root_operation_name) == ("front", "run")
    assert (summary.span_count, summary.error_span_count, summary.orphan_span_count) == (3, 1, 1)
    assert summary.min_start_time_unix_nano == START_NS + 1000
    assert summary.max_end_time_unix_nano == START_NS + 3500
    assert [(one.name, one.span_count, one.error_span_count) for one in summary.services] == [
        ("back", 2, 1),
        ("front", 1, 0),
    ]
    [calls] = ask("GetDependencies", of="DependencyReader").dependencies
    assert (calls.parent, calls.child, calls.call_count) == ("front", "back", 1)


def test_what_this_storage_can(ask: Ask):
    search = ask("GetCapabilities", of="Capabilities").search
    assert search.without_service_name
    assert search.same_span_conjunction
    assert not search.HasField("filter")
    with pytest.raises(grpc.RpcError) as refused:
        ask("FindTraces", query=jaeger_query(filter=b"\n\x03and"))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]


def test_large_traces_come_in_chunks_of_one_trace_each(ask: Ask, receiver: Receiver):
    for trace in (b"x" * 16, b"y" * 16):
        many = {f"part{number}": "ä" * 2000 for number in range(100)}
        keep(receiver, *(span_of(trace, one, **many) for one in range(1, 31)))
    chunks = ask("GetTraces", query=[{"trace_id": b"x" * 16}, {"trace_id": b"y" * 16}])
    assert len(chunks) >= 6
    assert all(chunk.ByteSize() <= CHUNK_BYTES * 1.01 for chunk in chunks)
    order = [{span.trace_id for span in spans_of(chunk)} for chunk in chunks]
    assert all(len(ids) == 1 for ids in order)
    assert order == sorted(order, key=str)
    assert len(spans_of(*chunks)) == 60


def test_what_is_cut_says_where_it_is_whole(ask: Ask, receiver: Receiver):
    trace = b"l" * 16
    keep(
        receiver,
        span_of(trace, 1, text="ä" * 100_000, small="x", many=["y" * 100] * 1000),
        span_of(trace, 2, text="short"),
    )
    cut, whole = spans_of(*ask("GetTraces", query=[{"trace_id": trace}]))
    found = attributes_of(cut.attributes)
    url = f"https://playhead.example/v1/spans/{trace.hex()}/{1:016x}"
    assert found["text"] == "ä" * 2048 + f"… [200000 bytes, full: {url}]"
    assert found["many"].startswith('["yyy')
    assert found["many"].endswith(f"full: {url}]")
    assert (found["small"], found[a.PLAYHEAD_URL]) == ("x", url)
    assert attributes_of(whole.attributes) == {"text": "short"}


def test_one_span_of_ten_thousand_kilobytes_fits_into_a_message(ask: Ask, receiver: Receiver):
    trace = b"h" * 16
    keep(receiver, span_of(trace, 1, **{f"part{number}": "z" * 5000 for number in range(2000)}))
    chunks = ask("GetTraces", query=[{"trace_id": trace}])
    assert len(spans_of(*chunks)) == 1
    assert chunks[0].ByteSize() <= CHUNK_BYTES


@pytest.mark.parametrize("end_ns", [0, 1, START_NS])
def test_a_span_that_ends_before_it_starts_takes_no_time(ask: Ask, receiver: Receiver, end_ns: int):
    keep(receiver, span_of(b"b" * 16, 1, end_ns=end_ns))
    (span,) = spans_of(*ask("GetTraces", query=[{"trace_id": b"b" * 16}]))
    assert span.end_time_unix_nano == span.start_time_unix_nano + 1 == START_NS + 1001
    (warning,) = attributes_of(span.attributes)["@jaeger@warnings"]
    assert warning.endswith(", adjusted to: 2023-11-14 22:13:20.000001001 +0000 UTC")


@pytest.mark.parametrize("named", [{}, {a.SERVICE_NAME: ""}])
def test_a_span_without_a_service_is_found_by_the_name_that_it_is_shown_with(
    ask: Ask, receiver: Receiver, named: dict[str, str]
):
    made = ResourceSpans.FromString(span_of(b"n" * 16, 1).otlp)
    del made.resource.attributes[:]
    set_attributes(made.resource.attributes, {"host.name": "h", **named})
    sent = ExportTraceServiceRequest(resource_spans=[made])
    receiver.intake.export("traces", sent.SerializeToString())
    (chunk,) = ask("GetTraces", query=[{"trace_id": b"n" * 16}])
    shown = attributes_of(chunk.resource_spans[0].resource.attributes)
    assert shown == {"host.name": "h", a.SERVICE_NAME: "unknown_service"}
    assert shown[a.SERVICE_NAME] in ask("GetServices").services
    assert ask("FindTraces", query={"service_name": "unknown_service"})


def test_a_span_that_has_not_ended_is_there(ask: Ask, receiver: Receiver):
    from support.tapes.handmade import HandMade

    made = HandMade(b"i" * 16, b"p" * 16)
    made.at_ns = time.time_ns()
    made.start()
    made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    spans = spans_of(*ask("GetTraces", query=[{"trace_id": b"p" * 16}]))
    assert "chat gpt-4o" in {span.name for span in spans}
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in spans)


def test_who_may_not_read_is_refused(tmp_path: Any):
    file = AccessFile(tmp_path)
    book = TokenBook(file)
    reader, sender = book.create("r", ["read"])[1], book.create("s", ["ingest"])[1]
    file.close()
    with (
        Receiver(
            tmp_path, Configuration(Addresses(http_port=0, grpc_port=0), Access(guarded=True))
        ) as running,
        grpc.insecure_channel(running.grpc_endpoint) as channel,
    ):

        def code(method: str, token: str | None) -> grpc.StatusCode:
            metadata = () if token is None else (("authorization", f"Bearer {token}"),)
            make = channel.unary_stream if method.rpartition("/")[2] in STREAMS else channel.unary_unary
            try:
                found = make(f"/jaeger.storage.v2.{method}")(b"", metadata=metadata, timeout=60)
                _ = list(found) if not isinstance(found, bytes) else found
            except grpc.RpcError as problem:
                return problem.code()  # type: ignore[attr-defined]
            return grpc.StatusCode.OK

        methods = [f"TraceReader/{one}" for one in ("GetServices", "GetOperations", "FindTraceIDs")]
        methods += [f"TraceReader/{one}" for one in STREAMS]
        methods += ["DependencyReader/GetDependencies", "Capabilities/GetCapabilities"]
        for method in methods:
            assert code(method, None) == grpc.StatusCode.UNAUTHENTICATED
            assert code(method, sender) == grpc.StatusCode.PERMISSION_DENIED
            assert code(method, reader) == grpc.StatusCode.OK


def test_any_time_that_can_be_said_may_be_asked_for(receiver: Receiver, ask: Ask):
    keep(receiver, span_of(b"j" * 16, 1))
    wanted = jaeger_query(search_depth=10)
    wanted.start_time_max.FromJsonString("9999-12-31T23:59:59Z")
    assert b"j" * 16 in {one.trace_id for one in spans_of(*ask("FindTraces", query=wanted))}
    wanted.start_time_min.FromJsonString("9999-12-31T23:59:59Z")
    assert spans_of(*ask("FindTraces", query=wanted)) == []


def test_who_has_read_what_is_written_down(tmp_path: Any):
    file = AccessFile(tmp_path)
    metadata = (("authorization", f"Bearer {TokenBook(file).create('viewer', ['read'])[1]}"),)
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=0), Access(guarded=True))
    ) as running:
        keep(running, span_of(b"j" * 16, 1))
        with grpc.insecure_channel(running.grpc_endpoint) as channel:

            def ask(method: str, query: Any) -> None:
                service = "Dependency" if "Dependencies" in method else "Trace"
                path = f"/jaeger.storage.v2.{service}Reader/{method}"
                make = channel.unary_stream if method in STREAMS else channel.unary_unary
                found: Any = make(path)(query.SerializeToString(), metadata=metadata, timeout=60)
                _ = list(found) if not isinstance(found, bytes) else found

            by_id = MESSAGES["GetTracesRequest"]()
            for trace_id in (b"j" * 16, b"k" * 16):
                by_id.query.add(trace_id=trace_id)
            ask("GetTraces", by_id)
            finding = ("FindTraces", "FindTraceIDs", "FindTraceSummaries")
            for method in (*finding, "GetServices", "GetOperations", "GetDependencies"):
                ask(method, MESSAGES[f"{method}Request"]())
    notes = Audit(file).notes("")
    file.close()
    assert {(note.name, note.action) for note in notes} == {("viewer", "read")}
    assert [note.subject for note in reversed(notes)] == [
        (b"j" * 16).hex(),
        (b"k" * 16).hex(),
        (b"j" * 16).hex(),
        *("traces", "traces", "services", "operations", "dependencies"),
    ]
