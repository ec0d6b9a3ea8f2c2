"""A real Jaeger over playhead's store answers as a Jaeger that has the same spans in its own.

200 odd traces go to Jaeger itself, to playhead whose store a second Jaeger reads, and from playhead to
a third one. Each is asked the same. What differs is a table of docs/neighbours.md, with the reasons:
`--update-outputs` writes its counts, and a difference without a reason fails.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from neighbours.odd_traces import TRACES, Odd, odd_traces
from neighbours.running import CONFIGS, Jaeger, jaeger
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.starting.running import receiver, until

PAGE = Path(__file__).parents[2] / "docs" / "neighbours.md"
BEGIN, END = "<!-- differences -->\n", "<!-- end of differences -->\n"
WAYS = ("over playhead's store", "forwarded by playhead")


def asked(odds: list[Odd], now: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Questions: what kind of, the path, and the parameters."""
    around = {"start": 0, "end": now // 1000 + 3600 * 10**6, "limit": 1000, "lookback": "custom"}
    services = [f"{name}-{number}" for name in ("front", "back") for number in range(7)]
    services += [f"a/b {number}" for number in range(7)]
    yield "services", "/api/services", {}
    for service in services:
        yield "operations", f"/api/services/{service.replace('/', '%2F')}/operations", {}
    for odd in odds:
        yield "trace", f"/api/traces/{odd.trace_id.hex()}", {}
    tags = ({"n": "1"}, {"b": "true"}, {"twice": "second"}, {"why": "queue"}, {"team": "payments"})
    for service in services:
        yield "search by service", "/api/traces", {**around, "service": service}
        for operation in ("call", "work", ""):
            wanted = {**around, "service": service, "operation": operation}
            yield "search by operation", "/api/traces", wanted
        for tag in (*tags, {"error": "true"}, {"span.kind": "client"}, {"d": "0.1"}, {"event": "mine"}):
            yield "search by tag", "/api/traces", {**around, "service": service, "tags": json.dumps(tag)}
        for least, most in (("400ms", "600ms"), ("", "1ms"), ("800ms", "")):
            wanted = {**around, "service": service, "minDuration": least, "maxDuration": most}
            yield "search by duration", "/api/traces", wanted


def answer(
    shown: Jaeger, kind: str, path: str, parameters: dict[str, Any], sent: Mapping[str, set[str]]
) -> Any:
    """An answer, without what is about the answer itself."""
    got = shown.client.get(path, params=parameters)
    if got.status_code != 200:
        return f"HTTP {got.status_code}"
    data = got.json()["data"] or []
    if kind == "trace":
        return trace_of(data[0], sent)
    return sorted(one["traceID"].zfill(32) for one in data) if "search" in kind else sorted(data)


def trace_of(shown: dict[str, Any], sent: Mapping[str, set[str]]) -> dict[str, Any]:
    """The spans of a trace by operation, each with its process; two of one operation are numbered."""
    spans: dict[str, Any] = {"id": shown["traceID"]}
    ids = sent[shown["traceID"].zfill(32)]

    def name(id: str) -> str:
        """The id; those that were not sent have one name."""
        return id if id in ids else "of its own"

    seen: Counter[str] = Counter()
    for span in sorted(shown["spans"], key=lambda span: json.dumps(span, sort_keys=True)):
        process, operation = shown["processes"][span["processID"]], span["operationName"]
        number, seen[operation] = seen[operation], seen[operation] + 1
        spans[f"span {operation}" + f" again {number}" * bool(number)] = {
            "id": name(span["spanID"]),
            "service": process["serviceName"],
            "process tags": tags_of(process.get("tags")),
            "start": span["startTime"],
            "duration": span["duration"],
            "flags": span.get("flags"),
            "references": sorted(
                f"{one['refType']} {one['traceID']} {name(one['spanID'])}" for one in span["references"]
            ),
            "tags": tags_of(span["tags"]),
            "events": sorted(
                json.dumps([one["timestamp"], tags_of(one["fields"])]) for one in span["logs"]
            ),
            "warnings": sorted(span.get("warnings") or []),
        }
    return spans


def tags_of(tags: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for tag in tags or ():
        found.setdefault(tag["key"], []).append([tag["type"], tag["value"]])
    return {key: sorted(values, key=str) for key, values in found.items()}


def differences(own: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ, in words without ids."""
    if own == other:
        return
    if isinstance(own, dict) and isinstance(other, dict):
        for key in {**own, **other}:
            below = re.sub(r"(?s)^span .*?( again \d)?$", r"span\1", key)
            yield from differences(own.get(key), other.get(key), f"{path} {below}".strip())
    elif (
        isinstance(own, list)
        and isinstance(other, list)
        and all(isinstance(one, str) for one in own + other)
    ):
        for name, more in (("missing", set(own) - set(other)), ("in addition", set(other) - set(own))):
            if more:
                yield f"{path} {name}".strip()
        if sorted(set(own)) == sorted(set(other)):
            yield f"{path} number of equal ones".strip()
    elif other is None or own is None:
        yield f"{path} {'missing' if other is None else 'in addition'}"
    elif failed(own) or failed(other):
        yield f"{path} {failed(own) or 'an answer'}, {failed(other) or 'an answer'}".strip()
    else:
        yield f"{path} differs".strip()


def failed(answer: Any) -> str:
    """The status of an answer without data."""
    return answer if isinstance(answer, str) and answer.startswith("HTTP") else ""


def table(rows: Counter[tuple[str, str, str]], reasons: dict[tuple[str, str], str]) -> str:
    """The table of the page."""
    lines = ["| Jaeger | answer | what differs | answers | reason |", "|---|---|---|---|---|"]
    for (way, kind, what), count in sorted(rows.items()):
        lines.append(f"| {way} | {kind} | {what} | {count} | {reasons.get((kind, what), '?')} |")
    return "\n".join(lines) + "\n"


def test_the_same_questions_have_the_same_answers(tmp_path: Path, request: pytest.FixtureRequest):
    now = time.time_ns() // 10**9 * 10**9
    made = list(odd_traces(now))
    odds = [odd for odd, _ in made]
    with (
        jaeger(tmp_path / "own") as own,
        jaeger(tmp_path / "forwarded") as forwarded,
        receiver(tmp_path / "data", (forwarded.http,)) as running,
        jaeger(
            tmp_path / "over", CONFIGS / "jaeger" / "jaeger.yaml", PLAYHEAD_GRPC=running.grpc_endpoint
        ) as over,
    ):
        for odd in odds:
            body = ExportTraceServiceRequest(resource_spans=[odd.entry, odd.other]).SerializeToString()
            for endpoint in (own.http, running.http_endpoint):
                got = httpx.post(
                    f"{endpoint}/v1/traces",
                    content=body,
                    headers={"content-type": "application/x-protobuf"},
                )
                assert got.status_code == 200, got.text
        for shown in (own, forwarded, over):
            last = odds[-1].trace_id.hex()
            until(lambda shown=shown, last=last: shown.trace(last), "the last trace is there", 120)
        spans = [(odd.trace_id.hex(), (odd.root, odd.call, odd.deep)) for odd in odds]
        sent = {trace: {span.span_id.hex() for span in those} for trace, those in spans}
        rows: Counter[tuple[str, str, str]] = Counter()
        count = 0
        for kind, path, parameters in asked(odds, now):
            count += 1
            wanted = answer(own, kind, path, parameters, sent)
            for way, shown in zip(WAYS, (over, forwarded), strict=True):
                given = answer(shown, kind, path, parameters, sent)
                for what in dict.fromkeys(differences(wanted, given)):
                    rows[way, kind, what] += 1
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    inside, after = rest.split(END)
    cells = [line.strip("| \n").split(" | ") for line in inside.splitlines()[2:]]
    reasons = {(kind, what): why for _, kind, what, _, why in cells}
    current = table(rows, reasons)
    if request.config.getoption("--update-outputs"):
        PAGE.write_text(f"{before}{BEGIN}{current}{END}{after}", "utf-8")
    else:
        assert current == inside
    assert "| ? |" not in current
    assert len(odds) == TRACES and count > 500
