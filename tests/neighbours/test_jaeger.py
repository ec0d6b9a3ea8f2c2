"""playhead → a real Jaeger, by OTLP over HTTP and gRPC: what it was forwarded is found in every way."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from neighbours.agents import home_for, record, shape, spans_in
from neighbours.running import jaeger
from support.starting.running import receiver, until

from playhead_cli.demo.provider import Provider
from playhead_receiver.storage import Query
from playhead_receiver.storage.spans.whole_spans import span_of


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_forwarded_runs_are_found(tmp_path: Path, transport: str):
    start = time.time_ns() // 1000 - 10**6
    with (
        Provider(pace_s=0.002) as provider,
        jaeger(tmp_path / "jaeger") as shown,
        receiver(
            tmp_path / "data", (shown.http if transport == "http" else f"grpc://{shown.grpc}",)
        ) as running,
    ):
        record(home_for(tmp_path, provider, running.http_endpoint))
        until(lambda: len(shape(running.store)) == 3, "three runs")
        window = {"start": start, "end": start + 3600 * 10**6}
        for run in running.store.runs(Query(mode=None)):
            trace = bytes.fromhex(run.trace_id)
            rows = list(running.store.outline(trace))
            ids = {row.span_id.hex() for row in rows}

            def same(trace: str = run.trace_id, ids: set[str] = ids) -> bool:
                return sorted(span["spanID"] for span in shown.trace(trace)) == sorted(ids)

            until(same, "Jaeger has each span once", 120)
            service = run.name.rpartition("-")[0]
            longest = max((row.end_ns or 0) - row.start_ns for row in rows) // 1000
            for wanted, expected in (
                ({}, {run.trace_id}),
                ({"operation": span_of(spans_in(running.store, run.trace_id)[0]).name}, {run.trace_id}),
                ({"tags": '{"gen_ai.operation.name":"chat"}'}, {run.trace_id}),
                ({"tags": '{"gen_ai.operation.name":"dance"}'}, set()),
                ({"minDuration": f"{longest - 1}us"}, {run.trace_id}),
                ({"minDuration": f"{longest + 1000}us"}, set()),
            ):
                assert shown.find(service=service, **window, **wanted) == expected, wanted
