"""What one span says spoils neither its neighbours nor the work on the others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.starting.cli import CommandLine
from support.tapes.batches import span_of
from support.tapes.spools import eventually as until

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Query, open_store
from playhead_receiver.storage.spans.whole_spans import Deriver
from playhead_receiver.storage.sql import engine
from playhead_receiver.storage.sql.reading.summaries import compute_summary as summed_up

GOOD, BAD = b"g" * 16, b"b" * 16
TOKENS = (1 << 63) - 1


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(
        tmp_path / "data", Configuration(Addresses(http_port=0, grpc_port=0, query_port=0))
    ) as receiver:
        yield receiver


def send(receiver: Receiver, *spans: Any) -> tuple[int, ExportTraceServiceResponse]:
    entries = [ResourceSpans.FromString(one.otlp) for one in spans]
    body = ExportTraceServiceRequest(resource_spans=entries).SerializeToString()
    kind = {"content-type": "application/x-protobuf"}
    told = httpx.post(f"{receiver.http_endpoint}/v1/traces", content=body, headers=kind)
    return told.status_code, ExportTraceServiceResponse.FromString(told.content)


SHAPES = {
    "lists": lambda depth: "[" * depth + "]" * depth,
    "objects": lambda depth: '{"a":' * depth + "1" + "}" * depth,
    "message": lambda depth: '[{"role":"user","parts":' + "[" * depth + "]" * depth + "}]",
}


@pytest.mark.parametrize("depth", [400, 1000, 50_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_json_nested_deep_is_kept_as_it_came(
    receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: str, depth: int
):
    text = SHAPES[shape](depth)
    names = ("gen_ai__input__messages", "gen_ai__output__messages", "gen_ai__tool__call__arguments", "x")
    deep = span_of(BAD, 1, gen_ai__operation__name="chat", **dict.fromkeys(names, text))
    for _ in range(2):  # twice: then it goes on from what is stored
        status, answer = send(receiver, span_of(GOOD, 1), deep, span_of(GOOD, 2))
        assert status == 200 and not answer.HasField("partial_success")
    store = receiver.store
    assert len(list(store.spans(GOOD))) == 2
    (stored,) = store.spans(BAD)
    assert stored.otlp == deep.otlp
    Deriver(store).whole(stored)
    while store.index():
        pass
    while store.sum_up():
        pass
    assert list(store.verify()) == []
    there = CommandLine(tmp_path / "data", capsys)
    for words in (["show", BAD.hex()], ["show", f"{BAD.hex()}:1"], ["diff", BAD.hex(), GOOD.hex()]):
        done = there(*words)
        assert done.status in (0, 1) and "error[" not in done.err, (words, done.err)


def test_what_cannot_be_stored_is_rejected_alone(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    commit = receiver.store.commit

    def failing(batch: Any) -> Any:
        if any(span.view.span_id == b"\0" * 7 + b"\3" for span in batch.spans):
            raise RecursionError("a fault of ours")
        return commit(batch)

    monkeypatch.setattr(receiver.store, "commit", failing)
    status, answer = send(receiver, *(span_of(GOOD, number) for number in range(1, 8)))
    assert status == 200
    assert answer.partial_success.rejected_spans == 1
    assert answer.partial_success.error_message == "it cannot be stored: RecursionError"
    assert len(list(receiver.store.spans(GOOD))) == 6


def test_tokens_without_end_stop_no_pass(receiver: Receiver):
    usage = {"gen_ai__usage__input_tokens": TOKENS, "gen_ai__usage__output_tokens": TOKENS}
    names = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}
    bad = [span_of(BAD, number, **usage, **names) for number in range(1, 4)]
    assert send(receiver, *bad, span_of(GOOD, 1))[0] == 200
    assert [one.otlp for one in receiver.store.spans(BAD)] == [one.otlp for one in bad]
    until(lambda: not receiver.store.sum_up())
    assert receiver.store.skipped_runs() == 0
    runs = list(receiver.store.runs(Query(mode=None, sort="tokens")))
    assert [run.trace_id for run in runs] == [BAD.hex(), GOOD.hex()]
    assert httpx.get(f"{receiver.query_endpoint}/ready").json()["status"] == "ok"
    for path in ("/v1/runs?sort=cost", "/v1/stats?by=model", f"/v1/runs/{BAD.hex()}"):
        assert httpx.get(receiver.query_endpoint + path).status_code == 200, path


def test_a_store_that_has_such_counts_already_is_summed_up(tmp_path: Path):
    store = open_store(tmp_path)
    try:
        store.commit(Batch([span_of(BAD, number, gen_ai__usage__input_tokens=5) for number in (1, 2)]))
        store._writer.run(lambda db: db.execute("UPDATE span SET input = ?", (TOKENS,)) and None)
        assert store.sum_up() == 1 and store.sum_up() == 0
        (run,) = store.runs(Query(mode=None))
        assert run.input_tokens > 1 << 60
    finally:
        store.close()


def test_a_run_that_cannot_be_summed_up_is_gone_past_and_told(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    def make(db: Any, run: Any, now_ns: int) -> Any:
        if run.row.trace_id == BAD:
            raise OverflowError("a fault of ours")
        return summed_up(db, run, now_ns)

    monkeypatch.setattr(engine, "compute_summary", make)
    assert send(receiver, span_of(BAD, 1), span_of(GOOD, 1))[0] == 200
    assert send(receiver, *(span_of(bytes([number]) * 16, 1) for number in range(1, 100)))[0] == 200
    until(lambda: receiver.store.sum_up(limit=1) == 0)
    assert receiver.store.skipped_runs() == 1
    told = httpx.get(f"{receiver.query_endpoint}/ready").json()
    assert told["status"] == "degraded"
    assert told["problem"] == "1 runs cannot be summed up; the log says why"
    figures = httpx.get(f"{receiver.query_endpoint}/metrics").text
    assert "playhead_runs_set_aside 1.0" in figures
    monkeypatch.undo()
    send(receiver, span_of(BAD, 2))
    until(lambda: receiver.store.skipped_runs() == 0)


def test_a_pass_that_fails_stops_no_other_and_is_told(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    compacted: list[int] = []

    def failing(limit: int = 64) -> int:
        raise OverflowError("a fault of ours")

    monkeypatch.setattr(receiver.store, "sum_up", failing)
    monkeypatch.setattr(receiver.store, "compact", lambda: compacted.append(1) or 0)
    until(lambda: bool(compacted))

    def told() -> Any:
        return httpx.get(f"{receiver.query_endpoint}/ready").json()

    until(lambda: told()["status"] == "degraded")
    assert told()["problem"] == "keeping fails; the log says why"
    figures = httpx.get(f"{receiver.query_endpoint}/metrics").text
    assert 'playhead_housekeeping_failing{pass="keeping"} 1.0' in figures
