"""Every report of a program keeps every field: over the wire, in the store, in a golden and at a replay.

From programs in other languages too: as events of spans and as log records, in the JSON that
OpenTelemetry's SDK for JavaScript sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from support.starting.home import Home
from support.starting.running import until

from playhead_core.reports import FIELDS, NAMES
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_replay import Run
from playhead_replay.goldens import read_golden, write_golden

ROOT = "4bf92f3577b34da6a3ce929d0e0e4736"


class Case(NamedTuple):
    """A call, what it reports, and the call that a changed program makes."""

    call: str
    fields: dict[str, Any]
    changed: str


CASES = {
    "agent": Case(
        'agent("researcher", id="researcher-3")',
        {"type": "researcher", "id": "researcher-3"},
        'agent("reviewer", id="researcher-3")',
    ),
    "goal": Case(
        'goal("refund order 81", type="support")',
        {"text": "refund order 81", "type": "support"},
        'goal("refund order 82", type="support")',
    ),
    "trigger": Case(
        f'triggered_by("webhook", run="{ROOT}", id="job 7")',
        {"type": "webhook", "run": ROOT, "id": "job 7"},
        f'triggered_by("scheduler", run="{ROOT}", id="job 7")',
    ),
    "phase": Case(
        'phase("executing", reason="again", type="retry")',
        {"name": "executing", "type": "retry", "reason": "again"},
        'phase("executing", reason="again", type="jump")',
    ),
    "decision": Case(
        'decision("which tool", ["search", "refund"], "search", reason="data is old", confidence=0.75,'
        ' rejected={"refund": "order unknown"}, method="rule_based", type="tool_selection",'
        ' rules=["no refund without an order"])',
        {
            "chosen": "search",
            "question": "which tool",
            "type": "tool_selection",
            "options": ["search", "refund"],
            "reason": "data is old",
            "confidence": 0.75,
            "method": "rule_based",
            "rejected": ["refund"],
            "rejected_reasons": ["order unknown"],
            "rules": ["no refund without an order"],
        },
        'decision("which tool", ["search", "refund"], "refund", type="tool_selection")',
    ),
    "signal": Case(
        'signal("empty_retrieval", "first_attempt", True, weight=0.5)',
        {"type": "empty_retrieval", "code": "first_attempt", "value": True, "weight": 0.5},
        'signal("empty_retrieval", "first_attempt", False, weight=0.5)',
    ),
    "failure": Case(
        'failure("tool", "timeout", step="search", message="no answer in 30 s")',
        {"code": "timeout", "type": "tool", "step": "search", "message": "no answer in 30 s"},
        'failure("tool", "api_error", step="search", message="no answer in 30 s")',
    ),
    "message": Case(
        'message("researcher", "question", "what does a wombat cost?", channel="mail")',
        {
            "to": "researcher",
            "kind": "question",
            "channel": "mail",
            "content": "what does a wombat cost?",
        },
        'message("reviewer", "question", "what does a wombat cost?", channel="mail")',
    ),
    "task": Case(
        'task("t2", name="write", parent="t1", depends_on=["t0"], status="running")',
        {"id": "t2", "name": "write", "status": "running", "parent": "t1", "depends_on": ["t0"]},
        'task("t2", name="write", parent="t1", depends_on=["t0"], status="failed")',
    ),
    "result": Case('result("refunded")', {"value": "refunded"}, 'result("declined")'),
}


def agent(changed: str = "") -> str:
    """The program; ``changed``: the kind of the report that differs."""
    calls = [one.changed if kind == changed else one.call for kind, one in CASES.items()]
    inside = "".join(f"    playhead.{call}\n" for call in calls)
    return f'import playhead\nwith playhead.step("planning", "plan"):\n{inside}'


def reported(run: Run) -> dict[str, dict[str, Any]]:
    return {one.kind: one.fields for one in run.reports}


WANTED = {kind: one.fields for kind, one in CASES.items()}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    made = Home(tmp_path_factory.mktemp("reports"), {})
    (made.folder / "agent.py").write_text(agent())
    done = made.playhead("record", "agent.py")
    assert done.returncode == 0, done.stderr
    return made


def test_the_table_has_every_report_with_every_field():
    of_events = {name.removeprefix("playhead."): list(fields) for name, fields in FIELDS.items()}
    own = {kind: [f"playhead.{kind}.{field}" for field in one.fields] for kind, one in CASES.items()}
    left = {kind: set(of_events[kind]) - set(fields) for kind, fields in own.items()}
    assert own.keys() == of_events.keys()
    assert {kind: fields for kind, fields in left.items() if fields} == {
        "phase": {"playhead.phase.previous"}  # the first one has none
    }


def test_each_is_the_same_in_the_store_and_in_a_golden(home: Home):
    run = home.run("agent-1")
    assert reported(run) == WANTED
    of_spans = {event.name for span in run.spans for event in span.events}
    assert NAMES <= of_spans, "each is an event of the current span"
    golden = home.folder / "goldens" / "agent.tape"
    write_golden(golden, run)
    assert reported(read_golden(golden)[0]) == WANTED


def test_a_replay_reports_the_same_and_fails_if_one_differs(home: Home):
    program = home.folder / "agent.py"
    assert home.report("agent-1")[0] == 0
    for kind in CASES:
        program.write_text(agent(kind))
        status, report = home.report("agent-1", "--force")
        found = {one["what"].split()[0] for one in report["divergences"]}
        assert (status, found) == (1, {kind}), kind
    program.write_text(agent())


def value_of(value: Any) -> dict[str, Any]:
    """A value as the SDK for JavaScript encodes it."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [value_of(one) for one in value]}}
    return {"stringValue": value}


def pairs(fields: Mapping[str, Any], prefix: str = "") -> list[dict[str, Any]]:
    return [{"key": f"{prefix}{key}", "value": value_of(value)} for key, value in fields.items()]


def requests(how: str, trace_id: str) -> dict[str, Any]:
    """One export of a span, and what a program reports in it: as events, or as log records."""
    names = {kind: f"playhead.{kind}" for kind in CASES}
    begin, span_id = 1_795_953_184_473_000_000, trace_id[:16]
    at = {kind: str(begin + number) for number, kind in enumerate(CASES)}
    events = [
        {
            "name": names[kind],
            "timeUnixNano": at[kind],
            "attributes": pairs(one.fields, f"{names[kind]}."),
            "droppedAttributesCount": 0,
        }
        for kind, one in CASES.items()
    ]
    records = [
        {
            "timeUnixNano": at[kind],
            "severityNumber": 9,
            "eventName": names[kind],
            "traceId": trace_id,
            "spanId": span_id,
            **(
                {"body": {"kvlistValue": {"values": pairs(one.fields)}}, "attributes": []}
                if how == "bodies of log records"
                else {"body": {}, "attributes": pairs(one.fields, f"{names[kind]}.")}
            ),
        }
        for kind, one in CASES.items()
    ]
    span = {
        "traceId": trace_id,
        "spanId": span_id,
        "name": "chat gpt-5.5",
        "kind": 3,
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + 1_000_000_000),
        "attributes": pairs({"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5.5"}),
        "events": events if how == "events of spans" else [],
        "status": {"code": 0},
    }
    resource = {"attributes": pairs({"service.name": "js"}), "droppedAttributesCount": 0}
    scope = {"name": "planner"}
    spans = [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": [span]}]}]
    logs = [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": records}]}]
    sent: dict[str, Any] = {"/v1/traces": {"resourceSpans": spans}}
    return sent if how == "events of spans" else sent | {"/v1/logs": {"resourceLogs": logs}}


@pytest.mark.parametrize("how", ["events of spans", "log records", "bodies of log records"])
def test_other_languages_report_the_same(how: str, tmp_path: Path):
    trace_id = "7" * 32
    with Receiver(tmp_path, Configuration(Addresses(0, None, 0))) as receiver:
        for path, body in requests(how, trace_id).items():
            assert httpx.post(f"{receiver.http_endpoint}{path}", json=body).json() == {}
        url = f"{receiver.query_endpoint}/v1/runs/{trace_id}/reports"
        found = httpx.get(url).json()["reports"]
        session = httpx.get(f"{receiver.query_endpoint}/v1/runs/{trace_id}/states").json()["session"]
        runs = f"{receiver.query_endpoint}/v1/runs"
        for word in ("timeout", "tool", "tool/timeout", "any"):  # a reported failure, as a derived one
            words = {"q": f"failure:{word}"}
            until(lambda words=words: httpx.get(runs, params=words).json()["runs"], word)
        counted = 'playhead_failures_found_total{code="timeout",type="tool"} 1.0'
        figures = f"{receiver.query_endpoint}/metrics"
        until(lambda: counted in httpx.get(figures).text, "it is counted")
    assert {one["kind"]: one["fields"] for one in found} == WANTED
    assert (session["goal"], session["parent"], session["tasks"]) == ("refund order 81", ROOT, ["t2"])
    assert (session["agent_type"], session["agent_id"]) == ("researcher", "researcher-3")
    (task,) = session["task_graph"]
    assert (task["name"], task["status"], task["parent"], task["depth"]) == ("write", "running", "t1", 0)


@pytest.mark.parametrize("name", ["playhead.agent.type", "gen_ai.agent.type"])
@pytest.mark.parametrize("on", ["resource", "span"])
def test_an_attribute_says_the_type_of_an_agent_that_reports_none(on: str, name: str, tmp_path: Path):
    trace_id = "8" * 32
    sent = requests("log records", trace_id)["/v1/traces"]
    (resource,) = sent["resourceSpans"]
    holder = resource["resource"] if on == "resource" else resource["scopeSpans"][0]["spans"][0]
    holder["attributes"] += pairs({name: "reviewer"})
    with Receiver(tmp_path, Configuration(Addresses(0, None, 0))) as receiver:
        assert httpx.post(f"{receiver.http_endpoint}/v1/traces", json=sent).json() == {}
        api = receiver.query_endpoint
        session = httpx.get(f"{api}/v1/runs/{trace_id}/states").json()["session"]
        listed = {
            kind: httpx.get(f"{api}/v1/runs", params={"q": f"agent_type:{kind}"}).json()["runs"]
            for kind in ("reviewer", "researcher")
        }
        sums = httpx.get(f"{api}/v1/stats", params={"by": "agent_type"}).json()["groups"]
    assert session["agent_type"] == "reviewer"
    assert [one["agent_types"] for one in listed["reviewer"]] == [["reviewer"]]
    assert listed["researcher"] == [] and [one["key"] for one in sums] == ["reviewer"]
