"""How fast a store answers: whole traces, lists of runs, filters, search. The store is filled first."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from ingest_load import TEXT, Load, requests
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.otlp import attributes_of
from playhead_receiver.api.compatibility.reading import Traces
from playhead_receiver.api.tempo.searching import TimeRange, search
from playhead_receiver.api.tempo.traceql import parse
from playhead_receiver.ingest import Intake
from playhead_receiver.storage import Query, Store, open_store
from playhead_receiver.storage.spans.whole_spans import span_of

STEPS = 20


def fill(store: Store, spans: int) -> list[bytes]:
    """Store about this many spans in runs of 41. Returns their trace ids."""
    intake = Intake(store)
    for request in requests(Load(max(4, spans // (2 * STEPS + 1)), STEPS)):
        intake.export("traces", request.body)
    while store.sum_up(1000):
        pass
    while store.compact(quiet_s=0.0):
        pass
    return [bytes.fromhex(run.trace_id) for run in store.runs(Query(mode=None, limit=1 << 40))]


def add_long_run(store: Store, spans: int) -> bytes:
    """Store one run of about this many spans in the light profile. Returns its trace id."""
    intake, known = Intake(store), {run.trace_id for run in store.runs(Query(mode=None, limit=1 << 40))}
    for request in requests(Load(1, spans // 2, "light", 512, seed=99)):
        intake.export("traces", request.body)
    while store.sum_up():
        pass
    runs = store.runs(Query(mode=None, limit=1 << 40))
    return next(bytes.fromhex(run.trace_id) for run in runs if run.trace_id not in known)


def response_id(store: Store, trace_id: bytes) -> str:
    """The response id of a model call in a trace."""
    for span in store.spans(trace_id):
        at = attributes_of(span_of(ResourceSpans.FromString(span.otlp)).attributes)
        if "gen_ai.response.id" in at:
            return str(at["gen_ai.response.id"])
    return ""


def timed(count: int, ask: Callable[[], object]) -> dict[str, float]:
    """Times of ``count`` queries in ms."""
    took: list[float] = []
    for _ in range(count):
        begin = time.perf_counter()
        ask()
        took.append((time.perf_counter() - begin) * 1000)
    took.sort()
    return {"p50_ms": took[count // 2], "p99_ms": took[min(count - 1, count * 99 // 100)]}


def main() -> None:
    """Fill, index, query, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, default=50_000)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--long", type=int, default=50_000, help="spans of the one long run")
    parser.add_argument("--no-index", action="store_true", help="without a search index")
    parser.add_argument("--store", default="", help="a new schema of a database, postgresql://…")
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    rng = random.Random(5)
    words = sorted({word for word in TEXT.split() if word.isalpha() and len(word) > 4})
    with tempfile.TemporaryDirectory() as place:
        store = open_store(given.store or place)
        begin = time.perf_counter()
        traces = fill(store, given.spans)
        filled_s = time.perf_counter() - begin
        long = add_long_run(store, given.long)
        begin = time.perf_counter()
        while not given.no_index and store.index():
            pass
        indexed_s = time.perf_counter() - begin
        used = store.size_bytes()
        index_bytes = sum(path.stat().st_size for path in Path(place).glob("search.sqlite*"))
        found: dict[str, dict[str, float]] = {
            "a trace of 41 spans, whole": timed(
                given.count, lambda: sum(len(span.otlp) for span in store.spans(rng.choice(traces)))
            ),
            "the newest 50 runs": timed(given.count, lambda: list(store.runs(Query()))),
            "the newest 50 of an agent": timed(
                given.count, lambda: list(store.runs(Query(agent="bench")))
            ),
            "the newest 50 that failed": timed(
                given.count, lambda: list(store.runs(Query(status="failure")))
            ),
            "the newest 50 with errors, of a model": timed(
                given.count, lambda: list(store.runs(Query(has_errors=True, model="gpt-4o")))
            ),
            "the 50 dearest": timed(given.count, lambda: list(store.runs(Query(sort="cost")))),
            f"the first 500 of a run of {given.long:,} spans": timed(
                given.count // 4, lambda: list(islice(store.spans(long), 500))
            ),
        }
        if not given.no_index:
            faces = Traces(store)
            ids = [response_id(store, trace) for trace in rng.sample(traces, min(50, len(traces)))]

            def by_id(id: str) -> object:
                return search(faces, parse(f'{{ span.gen_ai.response.id = "{id}" }}'), TimeRange())

            found |= {
                "one word": timed(given.count, lambda: store.search(rng.choice(words))),
                "one span by an attribute, in TraceQL": timed(
                    given.count, lambda: by_id(rng.choice(ids))
                ),
                "an attribute that no span has": timed(given.count, lambda: by_id("nothing")),
                "a word that nobody said": timed(given.count, lambda: store.search("nothingatall")),
                "two words": timed(given.count, lambda: store.search(" ".join(rng.sample(words, 2)))),
            }
        store.close()
    spans = len(traces) * (2 * STEPS + 1)
    print(
        f"{spans:,} spans, {used / 1e6:,.0f} MB, index {index_bytes / 1e6:,.0f} MB;"
        f" stored in {filled_s:,.0f} s, indexed in {indexed_s:,.0f} s"
    )
    print("| question | p50 ms | p99 ms |\n|---|---|---|")
    for name, took in found.items():
        print(f"| {name} | {took['p50_ms']:.1f} | {took['p99_ms']:.1f} |")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
