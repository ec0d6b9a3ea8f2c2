"""Rejections, answers by hand, edited arguments of tools, and rules, which the agent applies itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.long import long
from support.observed.asking import ASKING
from support.outside.controlling import Stage, on_stage, said_back
from support.servers.scripted import json_reply, openai_chat

TOOLS = """
    import openai
    import playhead
    from playhead_instrumentation.control import rules

    rules.SETTLE_S = 60.0  # an ask waits until what earlier calls used is known

    @playhead.tool(effect="write")
    def send_email(to, text, *, urgent=False):
        with open("sent.txt", "a") as file:
            print(to, text, urgent, file=file)
        return {"sent": to}

    client = openai.OpenAI()
    for number in range(3):
        try:
            answer = client.chat.completions.create(
                model="gpt-5.5", messages=[{"role": "user", "content": f"question {number}"}]
            )
            print(answer.choices[0].message.content, flush=True)
        except openai.APIStatusError as error:
            print(type(error).__name__, error.status_code, error.body["message"], flush=True)
    try:
        print(send_email("bob", "hello"), flush=True)
    except Exception as error:
        print(type(error).__name__, error.what, flush=True)
"""


PLAIN = f"""
{ASKING}
import playhead

@playhead.tool(effect="write")
def send_email(to, text, *, urgent=False):
    with open("sent.txt", "a") as file:
        print(to, text, urgent, file=file)
    return {{"sent": to}}

for number in range(3):
    print(asked(f"question {{number}}"), flush=True)
print(send_email("bob", "hello"), flush=True)
"""
"""The same without the SDK."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with on_stage(tmp_path) as stage:
        stage.provider.on("/v1/chat/completions", said_back, repeat=True)
        yield stage


def identical(stage: Stage) -> dict[str, Any]:
    status, report = stage.home.report("agent-1")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])
    return report


@pytest.mark.parametrize("level", [pytest.param("exchanges", marks=pytest.mark.acceptance), "strict"])
def test_what_waits_is_answered_by_hand_or_rejected(stage: Stage, level: str):
    agent = stage.start(
        stage.script(TOOLS), control="pause model=*; pause tool=send_*", PLAYHEAD_LEVEL=level
    )
    (waits,) = stage.operator.halted("agent-1")
    assert waits["reason"] == "model=*"
    by_hand = openai_chat.completion("by hand")
    stage.operator.order("agent-1", "answer", body=json.dumps(by_hand))
    stage.operator.halted("agent-1")
    stage.operator.order("agent-1", "reject", message="not today")
    stage.operator.halted("agent-1")
    stage.operator.order("agent-1", "continue")
    (waits,) = stage.operator.halted("agent-1")
    assert (waits["kind"], waits["key"], waits["reason"]) == ("tool", "send_email", "tool=send_*")
    stage.operator.order("agent-1", "reject", message="nobody writes to bob")
    said = ["by hand", "PermissionDeniedError 403 not today", "You said question 2"]
    assert stage.ended(agent).splitlines() == [*said, "AskRejected nobody writes to bob"]
    assert len(stage.provider.requests) == 1
    assert not (stage.home.folder / "sent.txt").exists()
    report = identical(stage)
    assert report["edited"] == ["answer of step 1", "answer of step 2", "answer of step 4"]


def test_the_arguments_of_a_tool_are_edited_and_its_result_given_by_hand(stage: Stage):
    script = stage.script(PLAIN)
    agent = stage.start(script, control="pause tool=send_email")
    stage.operator.halted("agent-1")
    stage.operator.order("agent-1", "edit", edits=[{"path": "to", "value": "anna"}])
    refused = stage.operator.post("agent-1", "edit", edits=[{"path": "topic", "value": "anna"}])
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("topic matches nothing; it has to, text, urgent")
    stage.operator.order("agent-1", "continue")
    assert stage.ended(agent).splitlines()[-1] == "{'sent': 'anna'}"
    assert (stage.home.folder / "sent.txt").read_text() == "anna hello False\n"
    identical(stage)
    agent = stage.start(script, control="pause tool=send_email")
    stage.operator.halted("agent-2")
    no_json = stage.operator.post("agent-2", "answer", body="no json")
    assert no_json.status_code == 422
    stage.operator.order("agent-2", "answer", body='{"sent": "nobody"}')
    assert stage.ended(agent).splitlines()[-1] == "{'sent': 'nobody'}"
    assert (stage.home.folder / "sent.txt").read_text() == "anna hello False\n"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("stop steps>2", "PermissionDeniedError 403 the rule stop steps>2 applies"),
        pytest.param(
            "stop model=gpt-5.5",
            "PermissionDeniedError 403 the rule stop model=gpt-5.5 applies",
            marks=pytest.mark.acceptance,
        ),
        pytest.param(
            "stop tokens>20",
            "PermissionDeniedError 403 the rule stop tokens>20 applies",
            marks=pytest.mark.acceptance,
        ),
        long("stop cost>0.00002", "PermissionDeniedError 403 the rule stop cost>2e-05 applies"),
        pytest.param(
            "stop seconds>0",
            "PermissionDeniedError 403 the rule stop seconds>0 applies",
            marks=pytest.mark.acceptance,
        ),
    ],
)
def test_a_limit_is_a_guard(stage: Stage, rule: str, said: str):
    agent = stage.start(stage.script(TOOLS), control=rule)
    printed = stage.ended(agent).splitlines()
    assert printed[2] == said
    identical(stage)


PATIENT = """
from playhead_instrumentation.control import rules
rules.SETTLE_S = 60.0
"""
"""An ask waits for as long as it takes until what earlier calls used is known."""

WITHOUT_SDK = f"""
{PATIENT}{ASKING}
for number in range(3):
    try:
        print(asked(f"question {{number}}"), flush=True)
    except HTTPError as problem:
        print(problem.code, problem.read().decode(), flush=True)
"""


@pytest.mark.parametrize(
    "rule", [pytest.param("stop tokens>20", marks=pytest.mark.acceptance), "stop cost>0.00002"]
)
def test_a_limit_counts_calls_that_no_sdk_makes(stage: Stage, rule: str):
    agent = stage.start(stage.script(WITHOUT_SDK), control=rule, PLAYHEAD_LEVEL="exchanges")
    printed = stage.ended(agent).splitlines()
    assert printed[0] == "You said question 0"
    assert printed[-1].startswith("403 ") and "applies" in printed[-1]
    identical(stage)


LOOPS = """
    import httpx
    import playhead

    @playhead.tool
    def look(at):
        return at

    for number in range(4):
        look("same")
        print(number, flush=True)
    httpx.get(f"{URL}/missing", timeout=60)
    print("asked", flush=True)
    look("other")
    print("end", flush=True)
"""


def test_breakpoints_at_errors_and_loops(stage: Stage):
    url = f"URL = {stage.provider.url!r}"
    stage.provider.on("/missing", json_reply({}, 404))
    script = stage.script(url + "\n" + LOOPS.replace("\n    ", "\n"))
    agent = stage.start(script, control="error; loop")
    (waits,) = stage.operator.halted("agent-1")
    assert waits["reason"] == "loop"
    stage.operator.order("agent-1", "continue")
    (waits,) = stage.operator.halted("agent-1")
    assert (waits["reason"], waits["body"]) == ("error", '{"at":"other"}')
    stage.operator.order("agent-1", "continue")
    assert stage.ended(agent).splitlines() == ["0", "1", "2", "3", "asked", "end"]
    identical(stage)
