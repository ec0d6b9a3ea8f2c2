"""Log records beside the spans of runs: what they cost the intake, and how fast they are found.

Each round has three receivers in processes of their own, which take the spans, the log records, and
both at once, as fast as they acknowledge them. Counted is the processor time until all is summed up and
indexed. What the spans cost beside log records is the time for both, less that for the log records
alone. On the last store, records are then found by trace id, level and word, shown at their step, and
deleted with their run.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
from ingest import send_all
from ingest_load import Load, Request, requests
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from standing import Standing

AT_ONCE = 512
"""Log records per request, as a batch processor of the SDK sends them."""
RARE = 100
"""One log record in this many is an error, with a unique word."""
LOOKUPS = 50


def spans_of(made: Sequence[Request]) -> list[Span]:
    """The spans of all requests."""
    return [
        span
        for request in made
        for group in ExportTraceServiceRequest.FromString(request.body).resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def records(spans: Sequence[Span], of_run: int) -> Iterator[LogRecord]:
    """``of_run`` log records of each run, each in one of its spans, run by run."""
    runs: dict[bytes, list[Span]] = {}
    for span in spans:
        runs.setdefault(span.trace_id, []).append(span)
    for number, own in enumerate(runs.values()):
        for place in range(of_run):
            span, rare = own[place % len(own)], place % RARE == RARE - 1
            record = LogRecord(trace_id=span.trace_id, span_id=span.span_id)
            record.time_unix_nano = record.observed_time_unix_nano = span.start_time_unix_nano + place
            record.severity_number = 17 if rare else 13 if place % 10 == 0 else 9  # type: ignore[assignment]
            said = f"order {number}x{place} lost" if rare else f"cache hit for page {place} of {number}"
            record.body.string_value = said
            record.attributes.add(key="logger.name").value.string_value = "app.cache"
            record.attributes.add(key="code.line.number").value.int_value = place
            yield record


def log_requests(spans: Sequence[Span], of_run: int) -> Iterator[bytes]:
    """The requests that send them."""
    waiting = records(spans, of_run)
    while some := list(islice(waiting, AT_ONCE)):
        request = ExportLogsServiceRequest()
        group = request.resource_logs.add()
        group.resource.attributes.add(key="service.name").value.string_value = "bench"
        group.scope_logs.add(log_records=some).scope.name = "app"
        yield request.SerializeToString()


def send_logs(receiving: Standing, made: Sequence[bytes]) -> None:
    """Send requests with log records over one connection, and repeat those that were refused."""
    headers = {"content-type": "application/x-protobuf"}
    with httpx.Client(base_url=receiving.http, timeout=60, headers=headers) as client:
        for body in made:
            while (answer := client.post("/v1/logs", content=body)).status_code != 200:
                time.sleep(float(answer.headers.get("retry-after", 0.1)))


def measure(what: str, made: Sequence[Request], logs: Sequence[bytes], folder: Path) -> float:
    """Processor time of a receiver that takes ``spans``, ``logs`` or ``both``, in seconds."""
    receiving = Standing(folder)
    try:
        receiving.settle()
        before_s = receiving.cpu_s()
        beside = threading.Thread(target=send_logs, args=(receiving, logs if what != "spans" else ()))
        beside.start()
        if what != "logs":
            send_all(receiving, "http", made)
        beside.join()
        receiving.settle()
        return receiving.cpu_s() - before_s
    finally:
        receiving.stop(signal.SIGTERM)


def timed(look: Callable[[int], Any], times: int = LOOKUPS) -> str:
    """Median and slowest of some calls, ms."""
    took: list[float] = []
    for number in range(times):
        begin = time.perf_counter()
        look(number)
        took.append((time.perf_counter() - begin) * 1000)
    return f"{statistics.median(took):.1f} / {max(took):.1f}"


def look_up(folder: Path, spans: Sequence[Span], of_run: int) -> Iterator[tuple[str, str]]:
    """What was looked up, and the times. `AssertionError` if an answer is not the right one."""
    traces = list(dict.fromkeys(span.trace_id.hex() for span in spans))
    receiving = Standing(folder)
    client = httpx.Client(base_url=receiving.query, timeout=60)

    def ask(path: str, **params: Any) -> Any:
        answer = client.get(f"{path}?{urllib.parse.urlencode(params)}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def of_trace(number: int) -> None:
        found = ask(f"/v1/runs/{traces[number]}/logs", limit=500)["logs"]
        assert len(found) == min(of_run, 500), len(found)

    def of_level(number: int) -> None:
        found = ask(f"/v1/runs/{traces[number]}/logs", level="error")["logs"]
        assert len(found) == of_run // RARE, found

    def of_word(number: int) -> None:
        (hit,) = ask("/v1/search", q=f"{number}x{RARE - 1}")["hits"]
        assert (hit["trace_id"], hit["who"]) == (traces[number], "log"), hit

    def at_step(number: int) -> None:
        span = next(one for one in spans if one.trace_id.hex() == traces[number])
        found = ask(f"/v1/runs/{traces[number]}/logs", span=span.span_id.hex(), limit=500)["logs"]
        assert {one["span_id"] for one in found} == {span.span_id.hex()}, found

    def gone(number: int) -> None:
        assert client.delete(f"/v1/runs/{traces[number]}").status_code == 200
        assert ask("/v1/search", q=f"{number}x{RARE - 1}")["hits"] == []
        assert client.get(f"/v1/runs/{traces[number]}/logs").status_code in (404, 410)

    try:
        while ask("/v1/search", q="nothing")["behind"]:
            time.sleep(0.5)
        yield "the records of a run", timed(of_trace)
        yield "its errors", timed(of_level)
        yield "one record of all, by a word", timed(of_word)
        yield "the records of a step", timed(at_step)
        yield "runs with an error", timed(lambda _: ask("/v1/runs", q="level:error"))
        yield "a run deleted; its records are not found again", timed(gone)
    finally:
        client.close()
        receiving.stop(signal.SIGTERM)


def main() -> None:
    """Print a row a round, the median of the ratios, and the times of the lookups."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--logs", type=int, default=100, help="log records of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", choices=("payload", "light"), default="light")
    asked = parser.parse_args()
    made = list(requests(Load(asked.runs, profile=asked.profile)))
    spans = spans_of(made)
    logs = list(log_requests(spans, asked.logs))
    count = asked.logs * asked.runs
    ratios: list[float] = []
    print(f"{len(spans):,} spans, {count:,} log records of {asked.runs:,} runs")
    print("| round | spans, µs each | log records, µs each | both, s | spans beside log records |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(asked.rounds):
            used = {
                what: measure(what, made, logs, Path(folder, f"{number}-{what}"))
                for what in ("spans", "logs", "both")
            }
            ratios.append((used["both"] - used["logs"]) / used["spans"])
            print(
                f"| {number + 1} | {used['spans'] / len(spans) * 1e6:.0f} "
                f"| {used['logs'] / count * 1e6:.0f} | {used['both']:.1f} | {ratios[-1]:.3f} |"
            )
        print(f"median of the ratios: {statistics.median(ratios):.3f}\n")
        print("| found | median / slowest, ms |\n|---|---|")
        for what, took in look_up(Path(folder, f"{asked.rounds - 1}-both"), spans, asked.logs):
            print(f"| {what} | {took} |")


if __name__ == "__main__":
    main()
