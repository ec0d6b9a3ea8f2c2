"""How fast pages show what is stored, in Chromium: lists of a large store, a long run beside Phoenix.

The scripts that measure are those of the tests, in `tests/support/pages/measures.py`.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from filled import filled
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from peers import Phoenix
from support.pages.chromium import Chromium, chromium
from support.pages.measures import FRAMES, first_seen, heap_mb, share, work_ms
from support.tapes.batches import span_of

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.standalone import SWITCH_S

TIMES = 5
PROTOBUF = {"content-type": "application/x-protobuf"}
ADDRESSES = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
LISTS = {
    "newest": "/",
    "dearest": "/?sort=cost",
    "of a model": "/?q=model%3Agpt-4o",
}
SCROLLED = """(row => {
  const scrolls = box =>
    /auto|scroll/.test(getComputedStyle(box).overflowY) && box.scrollHeight > box.clientHeight;
  let box = row.parentElement;
  while (box && !scrolls(box)) box = box.parentElement;
  return box ?? document.scrollingElement;
})"""


def lists(browser: Chromium, spans: int) -> dict[str, dict[str, float]]:
    """The first rows of lists over a large store, the median of some times."""
    found: dict[str, dict[str, float]] = {}
    with Receiver(filled(spans), ADDRESSES) as receiver:
        for name, address in LISTS.items():
            seen = [
                first_seen(browser, receiver.query_endpoint + address, "main > table tbody a")
                for _ in range(TIMES)
            ]
            found[f"{spans:,} spans, {name}"] = {
                what: statistics.median(one[what] for one in seen) for what in seen[0]
            }
    return found


def sent(http: str, trace: bytes, count: int) -> None:
    """Send a trace of calls of a model to a server, each the parent of eight."""
    now = time.time_ns()

    def spans() -> Iterator[ResourceSpans]:
        for number in range(1, count + 1):
            call = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}
            parent = (number + 6) // 8
            made = span_of(trace, number, parent=parent, name=f"call {number % 40}", **call)
            envelope = ResourceSpans.FromString(made.otlp)
            span = envelope.scope_spans[0].spans[0]
            span.start_time_unix_nano = now + number * 1000
            span.end_time_unix_nano = span.start_time_unix_nano + 500
            yield envelope

    whole = list(spans())
    for at in range(0, count, 500):
        request = ExportTraceServiceRequest(resource_spans=whole[at : at + 500])
        content = request.SerializeToString()
        httpx.post(f"{http}/v1/traces", content=content, headers=PROTOBUF, timeout=60).raise_for_status()


def looked_at(browser: Chromium, url: str, row: str) -> dict[str, float]:
    """A trace on a page whose rows a selector finds: until the first is seen, what it keeps, frames."""
    figures = first_seen(browser, url, row)
    with browser.tab() as page:
        page.open(url, row)
        page.wait("new Promise(done => setTimeout(() => done(true), 3000))")
        figures["heap_mb"] = heap_mb(page)
        figures["rows"] = page.run(f"document.querySelectorAll({json.dumps(row)}).length")
        figures["elements"] = page.run("document.querySelectorAll('*').length")
        box = f"{SCROLLED}(document.querySelector({json.dumps(row)}))"
        before = work_ms(page)
        frames = page.run(f"{FRAMES}(120, (box => () => {{ box.scrollTop += 600; }})({box}))")
        figures["scroll_p99_ms"] = share(frames, 0.99)
        figures["scroll_work_ms"] = (work_ms(page) - before) / len(frames)
    return figures


def runs(browser: Chromium, place: Path, count: int, beside: bool) -> dict[str, dict[str, float]]:
    """A run of so many spans on our page, and on Phoenix's."""
    trace = time.time_ns().to_bytes(16, "big")
    with Receiver(place / "ours", ADDRESSES) as receiver:
        sent(receiver.http_endpoint, trace, count)
        url = f"{receiver.query_endpoint}/?run={trace.hex()}&rows=tree"
        found = {f"playhead, {count:,} spans": looked_at(browser, url, ".row")}
    if beside:
        theirs = place / "theirs"
        theirs.mkdir()
        phoenix = Phoenix(theirs)
        try:
            sent(phoenix.http, trace, count)
            while phoenix.stored() < count:
                time.sleep(1)
            url = f"{phoenix.http}/redirects/traces/{trace.hex()}"
            row = "[data-testid=trace-tree] .span-node-wrap"
            found[f"Phoenix, {count:,} spans"] = looked_at(browser, url, row)
        finally:
            phoenix.stop(signal.SIGKILL)
    return found


def main() -> None:
    """Measure, print a line for each page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, default=1_000_000, help="spans of the store of the lists")
    parser.add_argument("--run", type=int, default=5000, help="spans of the run")
    parser.add_argument("--peers", action="store_true", help="Phoenix too, in an environment of its own")
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)  # as in `playhead up`, which has a process to itself
    with tempfile.TemporaryDirectory() as place, chromium(Path(place) / "profile") as browser:
        found = lists(browser, given.spans) if given.spans else {}
        found |= runs(browser, Path(place), given.run, given.peers)
    for name, figures in found.items():
        said = ", ".join(f"{what} {value:,.1f}" for what, value in figures.items())
        print(f"{name}: {said}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
