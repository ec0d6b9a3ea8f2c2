"""``python worker.py TRACER SDK URL OUT CASES [FOLDER …]``: makes the calls of an SDK, each in a trace.

Writes what the tracer's spans and events hold as JSON into OUT, by case; for ``playhead`` nothing, since
a receiver has it. ``CASES``: their names, comma-separated. ``FOLDER``: where libraries are.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRACER, SDK, URL, OUT, NAMES, *FOLDERS = sys.argv[1:]
sys.path[:0] = [str(Path(__file__).parents[1]), *FOLDERS]

from opentelemetry import trace  # noqa: E402

from covered.cases import CASES  # noqa: E402
from covered.tracers import TRACERS  # noqa: E402

HELD: list[Any] = []
"""What a program keeps until its end."""


def kept() -> Callable[[], dict[str, Any]]:
    """Keep all spans and events in memory. Returns what gives those of each case."""
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, events = InMemorySpanExporter(), InMemoryLogRecordExporter()
    TRACERS[TRACER].instrument(SDK) if TRACER == "logfire" else None
    provider: Any = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    if TRACER != "logfire":
        logs = LoggerProvider()
        logs.add_log_record_processor(SimpleLogRecordProcessor(events))
        set_logger_provider(logs)
        TRACERS[TRACER].instrument(SDK)

    def told() -> dict[str, Any]:
        found: dict[int, list[Any]] = defaultdict(list)
        finished = spans.get_finished_spans()
        for span in finished:
            attributes = dict(span.attributes or {})
            inner = [{"time": one.timestamp, **dict(one.attributes or {})} for one in span.events]
            one = {"name": span.name, "status": span.status.status_code.name, "events": inner}
            found[span.context.trace_id].append(one | {"attributes": attributes})
        for data in events.get_finished_logs():
            record = data.log_record
            if record.trace_id:
                said = {"attributes": dict(record.attributes or {}), "body": record.body}
                found[record.trace_id].append({"name": "", "status": "UNSET", "events": [], **said})
        return of_cases(finished, found)

    return told


def of_cases(finished: Any, found: dict[int, list[Any]]) -> dict[str, Any]:
    """What was told in the trace of each case, and in other traces that began during it."""
    cases = [span for span in finished if span.name.startswith("case ")]
    begun: dict[int, int] = {}
    for span in finished:
        trace_id = span.context.trace_id
        begun[trace_id] = min(span.start_time, begun.get(trace_id, span.start_time))
    named: dict[str, Any] = {}
    for case in cases:
        told = [
            one
            for trace_id, together in found.items()
            if case.start_time <= begun.get(trace_id, 0) <= case.end_time
            for one in together
        ]
        named[case.name.removeprefix("case ")] = [one for one in told if one["name"] != case.name]
    return named


def main() -> None:
    """Make the calls."""
    told = kept() if TRACER != "playhead" else None
    cases = CASES[SDK]()
    tracer = trace.get_tracer("cases")
    for name in NAMES.split(","):
        with tracer.start_as_current_span(f"case {name}"):
            try:
                HELD.append(cases[name](f"{URL}/{name.replace(' ', '-')}"))
            except Exception as problem:
                print(f"{name}: {type(problem).__name__}", file=sys.stderr)
    if told is not None:
        TRACERS[TRACER].settle()
        Path(OUT).write_text(json.dumps(told(), default=str))


main()
