"""Agents → the real Collector → playhead whole, and a real Jaeger with what its file lets through."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from neighbours.agents import PAYLOADS, home_for, record, shape, spans_in
from neighbours.running import Collector, Jaeger, jaeger
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.starting.running import receiver, until

from playhead_cli.demo.provider import Provider
from playhead_core.otlp import attributes_of, set_attributes
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Query
from playhead_receiver.storage.spans.whole_spans import span_of
from playhead_semconv import attributes as a

TRACES = 200
TEXT = "I am ann@example.org, card 4111 1111 1111 1111"
MESSAGE = json.dumps([{"role": "user", "parts": [{"type": "text", "content": TEXT}]}])


@contextmanager
def chain(folder: Path, *files: str, more: Any = None) -> Iterator[tuple[Receiver, Jaeger, Collector]]:
    """playhead and a Jaeger with a Collector before both."""
    with (
        receiver(folder / "data") as running,
        jaeger(folder / "jaeger") as shown,
        Collector(
            folder / "otelcol",
            "gateway",
            "backends",
            *files,
            receiver=running.http_endpoint,
            backends=("otlp_grpc/jaeger",),
            more=more,
            JAEGER_ENDPOINT=shown.grpc,
        ) as collector,
    ):
        yield running, shown, collector


def tags_of(span: dict[str, Any]) -> dict[str, Any]:
    return {tag["key"]: tag["value"] for tag in span["tags"]}


def test_jaeger_gets_every_span_without_payloads(tmp_path: Path):
    with Provider(pace_s=0.002) as provider, chain(tmp_path) as (running, shown, collector):
        record(home_for(tmp_path, provider, collector.http))
        until(lambda: len(shape(running.store)) == 3, "three runs", 120)
        for run in running.store.runs(Query(mode=None)):
            whole = {
                span_of(one).span_id.hex(): span_of(one) for one in spans_in(running.store, run.trace_id)
            }

            def same(trace: str = run.trace_id, whole: dict[str, Any] = whole) -> bool:
                return {span["spanID"] for span in shown.trace(trace)} == whole.keys()

            until(same, "Jaeger has all spans", 120)
            trimmed = {span["spanID"]: tags_of(span) for span in shown.trace(run.trace_id)}
            with_messages = 0
            for id, span in whole.items():
                said, seen = attributes_of(span.attributes), trimmed[id]
                with_messages += all(name in said for name in PAYLOADS)
                assert not {*PAYLOADS, a.GEN_AI_TOOL_CALL_ARGUMENTS} & seen.keys()
                assert seen[a.PLAYHEAD_URL].endswith(f"/v1/spans/{run.trace_id}/{id}")
                if a.GEN_AI_REQUEST_MODEL in said:
                    assert seen[a.GEN_AI_REQUEST_MODEL] == said[a.GEN_AI_REQUEST_MODEL]
            assert with_messages


def test_jaeger_gets_what_failed_or_was_slow_and_a_share_of_the_rest(tmp_path: Path):
    sampling = {"processors": {"tail_sampling": {"decision_wait": "1s"}}}
    now = time.time_ns()
    kinds = {"failed": range(20), "slow": range(20, 40), "good": range(40, TRACES)}
    spans = ResourceSpans()
    set_attributes(spans.resource.attributes, {a.SERVICE_NAME: "sampled"})
    scope = spans.scope_spans.add()
    for number in range(TRACES):
        span = scope.spans.add(
            trace_id=(number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128 | 1).to_bytes(16, "big"),
            span_id=(number + 1).to_bytes(8, "big"),
            name=next(kind for kind, numbers in kinds.items() if number in numbers),
            start_time_unix_nano=now - 60 * 10**9,
            end_time_unix_nano=now - (1 if number in kinds["slow"] else 59) * 10**9,
        )
        span.status.code = 2 if number in kinds["failed"] else 0
    with chain(tmp_path, "tail-sampling", more=sampling) as (running, shown, collector):
        send(collector, spans)
        until(lambda: running.intake.counted.spans == TRACES, "playhead has all")

        def found(kind: str) -> int:
            return len(shown.find(service="sampled", operation=kind, **window(now)))

        until(lambda: found("failed") == found("slow") == 20 and found("good"), "the sampled", 120)
        assert 4 <= found("good") <= 40  # a tenth of 160; which ones, is decided by their ids


def test_jaeger_gets_messages_with_masked_values(tmp_path: Path):
    spans = ResourceSpans()
    set_attributes(spans.resource.attributes, {a.SERVICE_NAME: "masked"})
    now = time.time_ns()
    span = spans.scope_spans.add().spans.add(
        trace_id=b"m" * 16,
        span_id=b"m" * 8,
        name="chat",
        start_time_unix_nano=now,
        end_time_unix_nano=now,
    )
    kept = {a.GEN_AI_INPUT_MESSAGES: MESSAGE, "api_key": "k-1234", "gen_ai.usage.input_tokens": 1234567}
    set_attributes(span.attributes, kept)
    with chain(tmp_path, "redaction") as (running, shown, collector):
        send(collector, spans)
        trace = (b"m" * 16).hex()
        (seen,) = until(lambda: shown.trace(trace), "Jaeger has it", 120)
        tags = tags_of(seen)
        assert tags[a.GEN_AI_INPUT_MESSAGES] == MESSAGE.replace("ann@example.org", "****").replace(
            "4111 1111 1111 1111", "****"
        )
        assert tags["api_key"] == "****"
        assert tags["gen_ai.usage.input_tokens"] == 1234567
        until(lambda: running.intake.counted.spans == 1, "playhead has it")
        (whole,) = spans_in(running.store, trace)
        assert attributes_of(span_of(whole).attributes)[a.GEN_AI_INPUT_MESSAGES] == MESSAGE


def send(collector: Collector, spans: ResourceSpans) -> None:
    body = ExportTraceServiceRequest(resource_spans=[spans]).SerializeToString()
    answer = httpx.post(
        f"{collector.http}/v1/traces", content=body, headers={"content-type": "application/x-protobuf"}
    )
    assert answer.status_code == 200, answer.text


def window(now: int) -> dict[str, int]:
    return {"start": now // 1000 - 3600 * 10**6, "end": now // 1000 + 3600 * 10**6}
