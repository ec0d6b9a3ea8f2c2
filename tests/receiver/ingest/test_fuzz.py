"""Whatever the body, the receiver answers as OTLP has it and goes on."""

import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.letters import LETTERS
from support.tapes.batches import span_of
from support.tapes.handmade import INSTANCE, HandMade

from playhead_core.otlp import pack, pack_resource, resource_logs, set_attributes
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Query
from playhead_receiver.storage.spans.whole_spans import Deriver

PROTOBUF, JSON = "application/x-protobuf", "application/json"


class Target:
    """A receiver that is asked and then has to be able to tell of everything it holds."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._client = httpx.Client(base_url=receiver.http_endpoint, timeout=60)

    def post(self, signal: str, body: bytes, kind: str, encoding: str = "") -> httpx.Response:
        headers = {"content-type": kind}
        if encoding:
            headers["content-encoding"] = encoding
        answer = self._client.post(f"/v1/{signal}", content=body, headers=headers)
        assert answer.status_code in (200, 400, 413, 415), (answer.status_code, answer.text)
        return answer

    def is_sound(self) -> None:
        store = self._receiver.store
        deriver = Deriver(store)
        for run in store.runs(Query(mode=None, limit=10**6)):
            trace_id = bytes.fromhex(run.trace_id)
            for span in store.spans(trace_id):
                deriver.is_whole(span)
                deriver.whole(span)
            for _ in deriver.pending(trace_id):
                pass
            for instance in run.instances:
                for _ in store.tape(bytes.fromhex(instance)).facts():
                    pass
        position = 0
        while changes := list(store.changes(position)):
            position = changes[-1].position
        assert position == store.position()

    def close(self) -> None:
        self._client.close()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder: Path = tmp_path_factory.mktemp("data")
    with Receiver(folder, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        opened = Target(receiver)
        yield opened
        opened.is_sound()
        opened.close()


def real_bodies() -> dict[str, bytes]:
    made = HandMade().start()
    made.chat(chunks=(b"data: a\n\n", b"data: b\n\n"))
    made.exit()
    logs = ExportLogsServiceRequest(
        resource_logs=[resource_logs(pack_resource(INSTANCE, {"service.name": "x"}), pack(made.facts))]
    )
    spans = [ResourceSpans.FromString(span_of(b"f" * 16, number, text="é").otlp) for number in (1, 2, 3)]
    return {
        "traces": ExportTraceServiceRequest(resource_spans=spans).SerializeToString(),
        "logs": logs.SerializeToString(),
        "metrics": b"",
    }


BODIES = real_bodies()
SIGNALS = st.sampled_from(["traces", "logs", "metrics"])
FUZZ = settings(
    max_examples=100,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MANY = settings(FUZZ, max_examples=5000)

values: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats()
    | st.text(LETTERS, max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(LETTERS, max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def mutations(draw: st.DrawFn, body: bytes) -> bytes:
    data = bytearray(body)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.sampled_from(["flip", "cut", "insert", "repeat"])):
            case "flip" if data:
                data[at] = draw(st.integers(0, 255))
            case "cut":
                del data[at : at + draw(st.integers(1, 40))]
            case "insert":
                data[at:at] = draw(st.binary(max_size=10))
            case _:
                data[at:at] = data[at : at + draw(st.integers(1, 200))]
    return bytes(data)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    signal = draw(SIGNALS)
    return signal, mutations(draw, BODIES[signal])


@st.composite
def strange_facts(draw: st.DrawFn) -> bytes:
    """Real log records with attributes that no exporter of ours would send."""
    request = ExportLogsServiceRequest.FromString(BODIES["logs"])
    fresh = draw(st.binary(min_size=16, max_size=16))  # else all but the first would be resent facts
    request.resource_logs[0].resource.CopyFrom(pack_resource(fresh, {}))
    records = request.resource_logs[0].scope_logs[0].log_records
    for place, which, value in draw(
        st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), values), min_size=1, max_size=4)
    ):
        record = records[place % len(records)]
        pair = record.attributes[which % len(record.attributes)]
        pair.ClearField("value")
        set_attributes(record.attributes, {pair.key: value})
    record = records[draw(st.integers(0, len(records) - 1))]
    record.time_unix_nano = draw(st.integers(0, (1 << 64) - 1))
    record.trace_id = draw(st.binary(max_size=20))
    return request.SerializeToString()


json_values: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(LETTERS, max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                "resourceSpans scopeSpans spans traceId spanId attributes key value stringValue intValue"
                " resource resourceLogs scopeLogs logRecords events links name kind body flags".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@FUZZ
@given(
    SIGNALS,
    st.binary(max_size=300),
    st.sampled_from([PROTOBUF, JSON, "", "text/plain"]),
    st.text(LETTERS, max_size=8),
)
def test_any_bytes(target: Target, signal: str, body: bytes, kind: str, encoding: str):
    encoding = encoding.encode("ascii", "ignore").decode().replace("\r", "").replace("\n", "")
    encoding = "".join(letter for letter in encoding if letter.isprintable()).strip()
    target.post(signal, body, kind, encoding)


@FUZZ
@given(mutated())
def test_real_requests_with_damage(target: Target, case: tuple[str, bytes]):
    target.post(case[0], case[1], PROTOBUF)


@FUZZ
@given(SIGNALS, st.binary(max_size=100), st.sampled_from(["gzip", "deflate", "zstd"]), st.data())
def test_damaged_compression(
    target: Target, signal: str, noise: bytes, encoding: str, data: st.DataObject
):
    body = gzip.compress(BODIES[signal]) if encoding == "gzip" else noise
    target.post(signal, mutations(data.draw, body), PROTOBUF, encoding)


@FUZZ
@given(SIGNALS, json_values)
def test_any_json(target: Target, signal: str, value: Any):
    target.post(signal, json.dumps(value).encode(), JSON)


@FUZZ
@given(strange_facts())
def test_facts_with_attributes_of_any_kind(target: Target, body: bytes):
    answer = target.post("logs", body, PROTOBUF)
    assert answer.status_code == 200


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@MANY
@given(mutated())
def test_real_requests_with_damage_many_times(target: Target, case: tuple[str, bytes]):
    target.post(case[0], case[1], PROTOBUF)


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@MANY
@given(strange_facts())
def test_facts_with_attributes_of_any_kind_many_times(target: Target, body: bytes):
    assert target.post("logs", body, PROTOBUF).status_code == 200


def test_bad_and_good_senders_at_once(target: Target):
    failures: list[object] = []

    def send(number: int) -> None:
        try:
            for turn in range(20):
                target.post("logs", BODIES["logs"][: -turn - 1 or None], PROTOBUF)
                assert target.post("traces", BODIES["traces"], PROTOBUF).content == b""
        except BaseException as problem:
            failures.append((number, problem))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
