"""What deriving failures, loops and standstills costs the intake: with and without it, in turn.

Each span has an event of one kind of report, all kinds in turn: decisions, signals, failures, phases and
the others that programs make. Both receivers take the same spans as fast as they acknowledge them; with
it on, a rule also sends alerts to a command. Counted is the processor time of the receiver from the
first request to the last acknowledgement, so that other work on the machine does not count. What is left
is derived later, and delays no acknowledgement.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ingest import send_all
from ingest_load import Load, Request, attribute, requests
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from standing import Standing

from playhead_receiver.config.configuration import Addresses, Configuration, Watching
from playhead_receiver.maintenance.findings import FindingsThread
from playhead_receiver.server import Receiver

REPORTS = {
    "agent": {"type": "support", "id": "support-1"},
    "goal": {"text": "refund order 81", "type": "support"},
    "trigger": {"type": "webhook", "id": "job 7"},
    "phase": {"name": "executing", "type": "normal", "previous": "planning"},
    "decision": {
        "question": "which tool",
        "options": ["search", "refund"],
        "chosen": "search",
        "reason": "data are old",
        "confidence": 0.75,
    },
    "signal": {"type": "empty_retrieval", "code": "first_attempt", "value": True, "weight": 0.5},
    "failure": {"type": "tool", "code": "timeout", "step": "search"},
    "message": {"to": "researcher", "kind": "question", "content": "what does a wombat cost?"},
    "task": {"id": "t2", "name": "write", "parent": "t1", "status": "running"},
    "result": {"value": "refunded"},
}


def with_reports(load: Iterable[Request]) -> Iterator[Request]:
    """Add a report to each span."""
    kinds = itertools.cycle(REPORTS.items())
    for request in load:
        whole = ExportTraceServiceRequest.FromString(request.body)
        for span in (one for r in whole.resource_spans for s in r.scope_spans for one in s.spans):
            kind, fields = next(kinds)
            event = span.events.add(name=f"playhead.{kind}", time_unix_nano=span.start_time_unix_nano)
            event.attributes.extend(
                attribute(f"playhead.{kind}.{field}", value) for field, value in fields.items()
            )
        yield replace(request, body=whole.SerializeToString())


class Receiving(Standing):
    """A receiver in a process of its own. ``how``: ``on`` or ``off``."""

    def __init__(self, data: Path, how: str) -> None:
        command = [sys.executable, __file__, "--receive", how, "--data", str(data)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.http, self.grpc = str(said["http"]), str(said["grpc"])


def receive(data: Path, how: str) -> None:
    """Be the receiver, until the other process closes the pipe."""
    if how == "off":
        FindingsThread.start = lambda self: None
    watching = Watching(alerts="loop -> true; failure:any -> true" if how == "on" else "")
    with Receiver(data, Configuration(Addresses(0, 0, 0), watching=watching)) as receiver:
        print(json.dumps({"http": receiver.http_endpoint, "grpc": receiver.grpc_endpoint}), flush=True)
        sys.stdin.read()


def measure(how: str, load: Load) -> tuple[float, float]:
    """Processor time and wall time of the intake, µs a span."""
    made = list(with_reports(requests(load)))
    with tempfile.TemporaryDirectory() as folder:
        receiving = Receiving(Path(folder), how)
        receiving.settle()
        before_s = receiving.cpu_s()
        outcome, took_s = send_all(receiving, "http", made)
        used_s = receiving.cpu_s() - before_s
        assert receiving.process.stdin is not None
        receiving.process.stdin.close()
        receiving.process.wait(120)
    return used_s / outcome.acknowledged * 1e6, took_s / outcome.acknowledged * 1e6


def main() -> None:
    """Print a row a pair, then the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--profile", choices=("payload", "light"), default="payload")
    parser.add_argument("--receive", choices=("on", "off"))
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    if asked.receive:
        receive(asked.data, asked.receive)
        return
    load = Load(asked.runs, profile=asked.profile)
    ratios: list[float] = []
    print("pair | processor time, µs a span: on, off | ratio | wall time: on, off")
    for pair in range(asked.pairs):
        found = {how: measure(how, load) for how in (("on", "off") if pair % 2 else ("off", "on"))}
        on, off = found["on"], found["off"]
        ratios.append(on[0] / off[0])
        print(f"{pair + 1} | {on[0]:.0f}, {off[0]:.0f} | {ratios[-1]:.3f} | {on[1]:.0f}, {off[1]:.0f}")
    print(f"median of the ratios: {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
