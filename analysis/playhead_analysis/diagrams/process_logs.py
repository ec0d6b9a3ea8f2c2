"""Logs for process-mining tools: XES (XML) and OCEL 2.0 (JSON).

Labels come from spans. Characters that XML does not allow are replaced, everything else is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from playhead_analysis.paths import PathStep, RunPath

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXTENSIONS: Final = (
    ("Concept", "concept"),
    ("Time", "time"),
    ("Lifecycle", "lifecycle"),
    ("Organizational", "org"),
    ("Cost", "cost"),
)
_ATTRIBUTES: Final = ("kind", "name", "status", "failure", "phase", "place")


def xes(paths: Sequence[RunPath]) -> Iterator[str]:
    """Yield the lines of an XES log: a trace for each run, an event for each step."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<log xes.version="1.0" xmlns="http://www.xes-standard.org/">'
    for name, prefix in _EXTENSIONS:
        uri = f"http://www.xes-standard.org/{prefix}.xesext"
        yield f'  <extension name="{name}" prefix="{prefix}" uri="{uri}"/>'
    yield '  <classifier name="Step" keys="concept:name"/>'
    for path in paths:
        yield "  <trace>"
        yield _xes_value("string", "concept:name", path.name, 4)
        run = {"agent": path.agent, "version": path.version, "trace_id": path.trace_id}
        for key, value in {**run, "status": path.status}.items():
            yield _xes_value("string", f"playhead:{key}", value, 4)
        for step in path.steps:
            yield "    <event>"
            yield _xes_value("string", "concept:name", step.label, 6)
            yield _xes_value("date", "time:timestamp", _time(_end(step)), 6)
            yield _xes_value("date", "playhead:started", _time(step.started_ns), 6)
            yield _xes_value("string", "lifecycle:transition", "complete", 6)
            yield _xes_value("string", "org:resource", step.phase or path.agent, 6)
            if step.cost_usd is not None:
                yield _xes_value("float", "cost:total", str(step.cost_usd), 6)
            for key, value in _attributes(step).items():
                if value:
                    yield _xes_value("string", f"playhead:{key}", value, 6)
            yield "    </event>"
        yield "  </trace>"
    yield "</log>"


def ocel(paths: Sequence[RunPath]) -> dict[str, Any]:
    """Return an OCEL 2.0 log: runs, agents and what was called are objects, steps are events."""
    objects: dict[tuple[str, str], dict[str, Any]] = {}
    events: list[dict[str, Any]] = []
    types: set[str] = set()

    def object_of(kind: str, id: str, **attributes: str) -> str:
        time = "1970-01-01T00:00:00Z"
        values = [{"name": name, "time": time, "value": value} for name, value in attributes.items()]
        known = objects.setdefault(
            (kind, id), {"id": f"{kind}:{id}", "type": kind, "attributes": values, "relationships": []}
        )
        return known["id"]

    for path in paths:
        agent = object_of("agent", path.agent or "(none)")
        run = object_of("run", path.trace_id, name=path.name, status=path.status, version=path.version)
        links = objects["run", path.trace_id]["relationships"]
        if not links:
            links.append({"objectId": agent, "qualifier": "run of"})
        for step in path.steps:
            types.add(step.label)
            called = object_of(step.kind, step.name or step.label)
            events.append(
                {
                    "id": f"{path.trace_id}:{step.place}",
                    "type": step.label,
                    "time": _time(_end(step)),
                    "attributes": [
                        {"name": key, "value": value} for key, value in _attributes(step).items()
                    ],
                    "relationships": [
                        {"objectId": run, "qualifier": "step of"},
                        {"objectId": called, "qualifier": "calls"},
                    ],
                }
            )
    texts = [{"name": key, "type": "string"} for key in _ATTRIBUTES]
    of_runs = [{"name": key, "type": "string"} for key in ("name", "status", "version")]
    kinds = sorted({kind for kind, _ in objects})
    return {
        "objectTypes": [
            {"name": kind, "attributes": of_runs if kind == "run" else []} for kind in kinds
        ],
        "eventTypes": [{"name": label, "attributes": texts} for label in sorted(types)],
        "objects": list(objects.values()),
        "events": events,
    }


def _attributes(step: PathStep) -> dict[str, str]:
    """Return the values of a step for `_ATTRIBUTES`."""
    values = (step.kind, step.name, step.status, step.failure, step.phase, step.place)
    return dict(zip(_ATTRIBUTES, values, strict=True))


def _end(step: PathStep) -> int:
    return step.started_ns + (step.duration_ns or 0)


def _time(time_ns: int) -> str:
    """Return a time as ISO 8601; the end of year 9999 for one that is later."""
    try:
        return (_EPOCH + timedelta(microseconds=time_ns // 1000)).isoformat(timespec="microseconds")
    except OverflowError:
        return "9999-12-31T23:59:59+00:00"


def _xes_value(kind: str, key: str, value: str, indent: int) -> str:
    safe = quoteattr(_NOT_XML.sub("\ufffd", value))
    return f'{" " * indent}<{kind} key="{key}" value={safe}/>'
