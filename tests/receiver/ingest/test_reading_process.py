"""Spans that are read in a process of its own: the same comes of them as where they are read here."""

import os
import random
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.mutants import PROTOBUF, Mutants
from support.whole_store import WholeStore

from playhead_core.errors import MalformedOtlp
from playhead_core.otlp import set_attributes
from playhead_receiver.ingest import Intake
from playhead_receiver.ingest.otlp_json import export_json
from playhead_receiver.ingest.reading_process import MOST_BYTES, SpanReadingProcess
from playhead_receiver.storage import Query, StoredSpan, open_store

RUNS, STEPS = 4, 60


@pytest.fixture
def span_reader() -> Iterator[SpanReadingProcess]:
    made = SpanReadingProcess()
    yield made
    made.close()


def step(run: int, number: int, size: int = 900) -> bytes:
    """A step of a run whose history grows."""
    chance = random.Random(run)
    texts = [chance.randbytes(size // 2).hex() for _ in range(STEPS)]
    history = [f'{{"role":"user","content":"{text}"}}' for text in texts]
    envelope = ResourceSpans()
    set_attributes(envelope.resource.attributes, {"service.name": f"agent-{run}"})
    scoped = envelope.scope_spans.add(schema_url="https://example.test/1")
    scoped.scope.name = "steps"
    for half in range(2):
        span = scoped.spans.add(
            trace_id=bytes([run + 1]) * 16,
            span_id=(2 * number + half + 1).to_bytes(8, "big"),
            name="chat",
            start_time_unix_nano=number + 1,
            end_time_unix_nano=number + 2,
        )
        messages = "[" + ",".join(history[: number + half]) + "]"
        set_attributes(span.attributes, {"gen_ai.input.messages": messages, "app.step": number})
    return ExportTraceServiceRequest(resource_spans=[envelope]).SerializeToString()


def send(intake: Intake, requests: Sequence[bytes]) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda body: intake.export("traces", body), requests))


def until_there(intake: Intake, span_reader: SpanReadingProcess) -> int:
    """Send what is small, several at once, until the process is there; its number."""
    while span_reader.pid is None:
        send(intake, [step(RUNS, 1, 8)] * 8)
    return span_reader.pid


def all_spans(store: WholeStore) -> dict[str, list[StoredSpan]]:
    runs = list(store.runs(Query(mode=None, limit=100)))
    return {
        run.trace_id: sorted(store.spans(bytes.fromhex(run.trace_id)), key=lambda span: span.span_id)
        for run in runs
    }


def test_what_is_read_there_comes_out_as_it_came_in(tmp_path: Path, span_reader: SpanReadingProcess):
    requests = [step(run, number) for number in range(STEPS) for run in range(RUNS)]
    here, there = open_store(tmp_path / "here"), open_store(tmp_path / "there")
    intake = Intake(there, span_reader=span_reader)
    pid = until_there(intake, span_reader)
    send(intake, requests)
    assert span_reader.pid == pid
    send(Intake(here), [step(RUNS, 1, 8), *requests])
    assert all_spans(there) == all_spans(here)
    assert list(there.verify()) == []
    assert there.size_bytes() < sum(map(len, requests)) / 4
    for store in (here, there):
        store.close()


def test_where_it_is_killed_the_rest_is_read_here(tmp_path: Path, span_reader: SpanReadingProcess):
    store = open_store(tmp_path)
    intake = Intake(store, span_reader=span_reader)
    for run in range(2):
        pid = until_there(intake, span_reader)
        requests = [step(run, number) for number in range(STEPS)]
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(send, intake, requests)
            os.kill(pid, signal.SIGKILL)
            sending.result()
        while span_reader.pid == pid:  # all was read before it was killed
            send(intake, [step(RUNS, 1, 8)])
    found = all_spans(store)
    assert [len(found[(bytes([run + 1]) * 16).hex()]) for run in range(2)] == [2 * STEPS] * 2
    assert list(store.verify()) == []
    store.close()


def test_what_is_too_large_for_it_is_read_here(tmp_path: Path, span_reader: SpanReadingProcess):
    store = open_store(tmp_path)
    intake = Intake(store, span_reader=span_reader)
    until_there(intake, span_reader)
    large = step(0, STEPS - 1, MOST_BYTES // STEPS)
    assert len(large) > MOST_BYTES
    intake.export("traces", large)
    intake.export("traces", b"")
    assert [len(spans) for spans in all_spans(store).values()] == [2, 2]
    store.close()


def test_it_says_the_same_of_what_is_damaged(tmp_path: Path, span_reader: SpanReadingProcess):
    def said(intake: Intake, body: bytes) -> str:
        try:
            return str(intake.export("traces", body).message)
        except MalformedOtlp as problem:
            return problem.what

    store = open_store(tmp_path)
    here, there = Intake(store), Intake(store, span_reader=span_reader)
    until_there(there, span_reader)
    sound = step(0, 3, 80)
    as_json = export_json(ExportTraceServiceRequest.FromString(sound))
    mutants = Mutants(7, {"traces": (sound, as_json)})
    bodies = [
        mutant.body
        for mutant in (mutants.next() for _ in range(400))
        if mutant.kind == PROTOBUF and not mutant.encoding
    ]
    answers = [said(here, body) for body in bodies]
    assert len(set(answers)) > 5
    assert [said(there, body) for body in bodies] == answers
    assert list(store.verify()) == []
    store.close()
