"""A program reports decisions, signals and phases: recorded, shown, found, replayed, asserted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.starting.home import Home
from support.starting.inner_pytest import run_pytest

from playhead_core.reports import NAMES
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_replay.goldens import write_golden
from playhead_semconv import attributes as a
from playhead_semconv import events as e

SECRET = "sk-proj-" + "abcdefghij0123456789ABCDEFGHIJ0123456789abcd"
PARENT = "0af7651916cd43dd8448eb211c80319c"
CHOSEN = "Tool.SEARCH"
AGENT = f"""
import asyncio, enum, threading
import playhead

class Tool(enum.Enum):
    SEARCH = "search"
    REFUND = "refund"

@playhead.tool
def look(order):
    playhead.signal("tool_success", "full_match")
    return order

playhead.agent("support", id="support-2")
playhead.goal("refund the wombat", type="support")
playhead.triggered_by("another_agent", run="00-{PARENT}-b7ad6b7169203331-01")
with playhead.phase("planning"):
    playhead.decision("which tool", list(Tool), {CHOSEN}, reason="{SECRET}", confidence=0.8,
        rejected={{Tool.REFUND: "unknown order"}}, method="rule_based", rules=(Tool.SEARCH, "{SECRET}"))
playhead.phase("executing", type="retry", reason="again")
playhead.signal("empty_retrieval", "first_attempt", look(81) == 81, weight=0.5)
playhead.failure("tool", "timeout", step=3)
playhead.message("researcher", "question", {{"find": "quagga", "api_key": "{SECRET}"}}, channel="slack")
playhead.task("t2", parent="t1", depends_on=("t0",), status="running")

@playhead.step("planning", "gen")
def items(count):
    for number in range(count):
        yield number
    return "end"

@playhead.step("wait")
async def ticks(count):
    for number in range(count):
        playhead.signal("token_usage", "partial_match", number)
        yield number

async def main():
    return [number async for number in ticks(2)]

assert list(items(3)) == [0, 1, 2] and asyncio.run(main()) == [0, 1]
generator = items(2)
assert next(generator) == 0
generator.close()
thread = threading.Thread(target=lambda: playhead.phase("in a thread"))
thread.start()
thread.join()
with playhead.step("tool_execution", "inside") as step:
    step.output = {{"found": 1}}
    playhead.decision("inside", ["a", "b"], "a")
class Bad:
    def __str__(self): raise RuntimeError
    __repr__ = __str__
playhead.decision(Bad(), 7, None, confidence="high", rules="no list")
playhead.signal(Bad, Bad(), Bad(), weight=9)
playhead.phase(Bad())
assert playhead.result("refunded") == "refunded"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    made = Home(tmp_path_factory.mktemp("reports"), {})
    (made.folder / "agent.py").write_text(AGENT)
    done = made.playhead("record", "agent.py")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("playhead.decision.options is not a list of texts") == 1
    yield made


def test_each_is_a_fact_and_an_event_without_credentials(home: Home):
    run = home.run("agent-1")
    reports = {kind: [] for kind in ("decision", "signal", "phase")}
    for one in run.reports:
        reports.setdefault(one.kind, []).append(one)
    assert len(run.reports) == len(list(run.tape.named(*NAMES)))
    first, inside = reports["decision"]
    assert first.fields == {
        "question": "which tool",
        "options": ["search", "refund"],
        "chosen": "search",
        "reason": "[redacted]",
        "confidence": 0.8,
        "method": "rule_based",
        "rejected": ["refund"],
        "rejected_reasons": ["unknown order"],
        "rules": ["search", "[redacted]"],
    }
    assert first.rejected == [("refund", "unknown order")] and inside.text("chosen") == "a"
    assert reports["goal"][0].fields == {"text": "refund the wombat", "type": "support"}
    assert reports["trigger"][0].fields == {"type": "another_agent", "run": PARENT}
    assert reports["failure"][0].fields == {"type": "tool", "code": "timeout", "step": "3"}
    message = reports["message"][0]
    assert message.text("channel") == "slack"
    assert json.loads(message.text("content")) == {"find": "quagga", "api_key": "[redacted]"}
    task = {"id": "t2", "parent": "t1", "depends_on": ["t0"], "status": "running"}
    assert reports["task"][0].fields == task and reports["result"][0].text("value") == "refunded"
    phases = [(one.text("previous"), one.text("name"), one.text("type")) for one in reports["phase"]]
    assert phases[:4] == [
        ("", "planning", "normal"),
        ("planning", "", "normal"),
        ("", "executing", "retry"),
        ("", "in a thread", "normal"),
    ]
    signals = {one.text("type"): one for one in reports["signal"]}
    assert signals["empty_retrieval"].fields["value"] is True
    assert signals["tool_success"].step == 1, "inside of the tool"
    told = [event for span in run.spans for event in span.events if event.name == e.PLAYHEAD_DECISION]
    assert [event.attributes[a.PLAYHEAD_DECISION_CHOSEN] for event in told] == ["search", "a"]
    assert SECRET not in home.playhead("events", "agent-1", "--json").stdout
    steps = {fact.attributes[a.PLAYHEAD_STEP_NAME]: fact for fact in run.tape.named(e.PLAYHEAD_STEP)}
    assert steps["ticks"].attributes[a.PLAYHEAD_STEP_TYPE] == "wait"
    body = steps["inside"].body
    assert body is not None and json.loads(run.tape.read(body))["output"] == {"found": 1}
    outputs = [
        json.loads(run.tape.read(fact.body))["output"]
        for fact in run.tape.named(e.PLAYHEAD_STEP)
        if fact.body is not None and fact.attributes[a.PLAYHEAD_STEP_NAME] == "gen"
    ]
    assert outputs == [[0, 1, 2], [0]]


def test_they_are_shown_and_find_their_run(home: Home):
    shown = home.playhead("show", "agent-1", "--all").stdout
    assert "decision which tool → search of 2  [redacted], rule_based, confidence 0.8" in shown
    assert "phase (none) → executing (retry)  again" in shown
    assert "  tasks:\n    t2  running\n" in shown
    step = home.playhead("show", "agent-1:1").stdout
    assert "signal empty_retrieval first_attempt true  weight 0.5" in step
    printed = json.loads(home.playhead("show", "agent-1", "--json").stdout)
    assert [one["kind"] for one in printed["reports"][:3]] == ["agent", "goal", "trigger"]
    session = printed["session"]
    assert (session["agent_type"], session["agent_id"]) == ("support", "support-2")
    assert {"TYPE", "FAILURES"} <= {*home.playhead("ls").stdout.splitlines()[0].split()}
    assert home.runs("failure:tool/timeout")
    (row,) = home.runs("agent_type:support")
    assert row["agent_types"] == ["support"] and not home.runs("agent_type:other")
    assert "agent-1" in home.playhead("search", "wombat").stdout
    found = {
        query: bool(home.runs(*query.split(" ")))
        for query in (
            'goal:"refund the wombat"',
            "phase:planning",
            "decision:search",
            "signal:empty_retrieval",
            "signal:first_attempt phase:executing",
            "decision:refund",
            "goal:other",
        )
    }
    assert list(found.values()) == [True] * 5 + [False] * 2


def test_a_replay_compares_them(home: Home):
    status, report = home.report("agent-1")
    assert status == 0, report
    agent = home.folder / "agent.py"
    agent.write_text(AGENT.replace(CHOSEN, "Tool.REFUND", 1).replace('"in a thread"', '"elsewhere"'))
    status, report = home.report("agent-1", "--force")
    assert status == 1
    changed = [(one["what"], one["path"], one["tape"], one["now"]) for one in report["divergences"]]
    assert changed == [
        ("decision which tool", "$.chosen", '"search"', '"refund"'),
        ("phase in a thread", "$.name", '"in a thread"', '"elsewhere"'),
    ]
    assert home.playhead("record", "agent.py").returncode == 0
    agent.write_text(AGENT)
    difference = home.playhead("diff", "agent-1", "agent-2").stdout
    assert "decision 1.chosen" in difference and "refund" in difference


def test_a_fork_reports_what_it_does(home: Home):
    edit = ("--edit", "tool_result=5")
    assert home.playhead("fork", "agent-1:1", *edit).returncode == 0
    fork = home.run("last")
    [signal] = [one for one in fork.reports if one.text("type") == "empty_retrieval"]
    assert signal.fields["value"] is False
    assert len(fork.reports) == len(home.run("agent-1").reports) - 1, "the tool is not run again"


def test_random_values_in_reports_are_no_difference(home: Home):
    (home.folder / "random_agent.py").write_text(
        "import time, uuid, playhead\n"
        "playhead.decision('which', ['a', 'b'], 'a', reason=f'{time.time()} {uuid.uuid4()}')\n"
    )
    assert home.playhead("record", "--level", "exchanges", "random_agent.py").returncode == 0
    status, report = home.report("last")
    assert (status, report["divergences"]) == (0, [])


def test_a_golden_asserts_them(home: Home):
    tests = home.folder / "tests"
    write_golden(tests / "goldens" / "agent.tape", home.run("agent-1"))
    (tests / "test_it.py").write_text(
        """
import pytest

def test_reports(tape):
    run = tape.replay("agent")
    run.assert_decision("search", question="which tool", times=1)
    run.assert_signal("empty_retrieval", "first_attempt", True)
    assert run.phases[:3] == ["planning", "executing", "in a thread"]
    run.assert_phases(run.phases)
    for wrong, said in (
        (lambda: run.assert_decision("refund"), "expected: refund"),
        (lambda: run.assert_signal("rate_limited"), "no signal rate_limited"),
        (lambda: run.assert_phases(["planning"]), "phases differ"),
    ):
        with pytest.raises(AssertionError, match=said):
            wrong()
"""
    )
    done = run_pytest("tests", cwd=home.folder, environ=home.bare)
    assert done.returncode == 0, done.stdout


def test_without_content_there_are_types_and_codes(home: Home):
    env = {**home.environ, "PLAYHEAD_CONTENT": "metadata"}
    assert home.playhead("record", "agent.py", env=env).returncode == 0
    decisions = [one for one in home.run("last").reports if one.kind == "decision"]
    assert len(decisions) == 2
    assert decisions[0].fields.keys() == {"chosen", "confidence", "method"}
    assert decisions[0].text("chosen") not in ("", "search")
    said = home.playhead("events", "last", "--json").stdout
    assert "wombat" not in said and "which tool" not in said


def test_a_javascript_sender_reports_the_same(home: Home):
    """What OpenTelemetry's SDK for JavaScript sends: events of spans, and log records."""
    sent = Path(__file__).parents[1] / "support" / "outside" / "javascript_reports.json"
    requests = json.loads(sent.read_text("utf-8"))
    with Receiver(home.data_dir, Configuration(Addresses(0, None, 0))) as receiver:
        for path in ("/v1/traces", "/v1/logs"):
            assert httpx.post(f"{receiver.http_endpoint}{path}", json=requests[path]).json() == {}
        while receiver.store.index():
            pass
        found = httpx.get(f"{receiver.query_endpoint}/v1/runs/js-planner-1/reports").json()["reports"]
    kinds = [one["kind"] for one in found]
    assert sorted(kinds) == sorted(name.removeprefix("playhead.") for name in NAMES)
    by_kind = {one["kind"]: one for one in found}
    assert by_kind["decision"]["fields"]["rejected_reasons"] == ["the order is unknown"]
    assert (by_kind["decision"]["step"], by_kind["signal"]["fields"]["value"]) == (1, True)
    assert by_kind["message"]["fields"]["to"] == "researcher"
    shown = home.playhead("show", "js-planner-1:1").stdout
    assert "rejected: the order is unknown" in shown and '"find": "quagga"' in shown
    for words in (["decision:search"], ["phase:planning"], ['goal:"refund order 81"']):
        assert "js-planner-1" in {one["name"] for one in home.runs(*words)}
    assert "js-planner-1" in home.playhead("search", "zebra").stdout
    assert "js-planner-1" in home.playhead("search", "quagga").stdout
