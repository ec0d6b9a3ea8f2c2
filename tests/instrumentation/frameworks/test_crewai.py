"""Spans of an unmodified CrewAI program, and at a replay."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import APART, LAUNCHERS, Recorded, outline
from support.servers.scripted import Reply, Request, chat_sse, json_reply, openai_chat
from support.tapes.conventions import check_content, check_registered

from playhead_semconv import attributes as a

pytestmark = pytest.mark.acceptance  # CrewAI alone takes 10 seconds to import

CREWAI = Path(sys.prefix, "apart-crewai")
"""With the versions that CrewAI asks for, of libraries that these tests have newer ones of."""

QUIET = """\
import os
os.environ.update(CREWAI_DISABLE_TELEMETRY='true', CREWAI_TRACING_ENABLED='false')
"""
"""In a recording and in its replay: CrewAI would post to its vendor."""
KEY = {"home/.local/share/crewai/credentials/secret.key": "A" * 43 + "="}
"""What CrewAI makes when it first runs on a machine."""
PROGRAM = QUIET + Path(__file__).with_name("crewai_program.py").read_text("utf-8")

DELEGATED = {"task": "charge 81", "context": "none", "coworker": "billing"}
CALLS: dict[str, list[tuple[str, Any]]] = {
    "lead": [
        ("look_up", {"order": 81}),
        ("fail", {"reason": "no stock"}),
        ("delegate_work_to_coworker", DELEGATED),
    ],
    "billing": [("charge", {"order": 81})],
    "alone": [("look_up", {"order": 82})],
}
"""The tools that an agent calls, one after the other."""


def answer(request: Request) -> Reply:
    """Call the tools of the agent; then say who it is."""
    messages = request.json["messages"]
    found = re.search(r"You are (\w+)", str(messages[0]["content"]))
    name = "" if found is None else found[1]
    done = sum(message["role"] == "tool" for message in messages)
    calls = CALLS.get(name, [])[done:][:1] if "mail" not in str(messages) else []
    whole = openai_chat.completion(
        None if calls else f"I am {name}",
        tool_calls=[
            openai_chat.tool_call(f"call_{name}_{done}", tool, arguments) for tool, arguments in calls
        ],
    )
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@pytest.fixture(scope="module", params=LAUNCHERS, ids=" ".join)
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    launcher, level = request.param
    path = ":".join(map(str, (CREWAI, *APART)))
    return record(PROGRAM, "/chat/completions", answer, level, KEY, launcher, PYTHONPATH=path)


TREE = """\
invoke_workflow support
  triage
    invoke_agent lead
      chat gpt-4o
      execute_tool look_up
      chat gpt-4o
      execute_tool fail
      chat gpt-4o
      execute_tool delegate_work_to_coworker lead billing
        invoke_agent billing
          chat gpt-4o
          execute_tool charge
          chat gpt-4o
      chat gpt-4o
  notify
    invoke_agent billing
      chat gpt-4o
invoke_workflow Refund
  ask
    invoke_agent alone
      chat gpt-4o
      execute_tool look_up
      chat gpt-4o
  confirm
invoke_workflow strict
  task
    invoke_agent refused
      chat gpt-4o
    guardrail refuse True
"""

PRINTED = """\
crew I am billing
flow I am alone, confirmed
failing Task failed guardrail validation after 0 retries. Last error: not polite
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    # CrewAI prints panels, too, from threads of its own
    said = recorded.stdout.splitlines(keepends=True)
    assert "".join(line for line in said if line in PRINTED.splitlines(keepends=True)) == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    shown = (
        a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM,
        a.PLAYHEAD_FRAMEWORK_HANDOFF_TO,
        a.PLAYHEAD_FRAMEWORK_GUARDRAIL_TRIGGERED,
    )
    assert outline(recorded.spans, *shown) == TREE.splitlines()
    found = [span.attributes for root in recorded.spans for span in root.walk()]
    assert sum(check_registered(one) + check_content(one) for one in found) > 50


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool delegate_work_to_coworker" in str(before)


def test_agents_tools_and_errors(recorded: Recorded):
    lead = ("invoke_workflow support", "triage", "invoke_agent lead")
    assert recorded.at(*lead) == {
        a.GEN_AI_OPERATION_NAME: "invoke_agent",
        a.GEN_AI_AGENT_NAME: "lead",
        a.PLAYHEAD_FRAMEWORK_NAME: "crewai",
    }
    assert recorded.at(*lead, "execute_tool look_up") == {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "look_up",
        a.GEN_AI_TOOL_TYPE: "function",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"order": 81}',
        a.GEN_AI_TOOL_CALL_RESULT: "order 81",
        a.PLAYHEAD_FRAMEWORK_NAME: "crewai",
    }
    assert recorded.at(*lead, "execute_tool fail")["error"] == "ValueError: no stock"
    refused = "Task failed guardrail validation after 0 retries. Last error: not polite"
    assert recorded.at("invoke_workflow strict")["error"] == f"_OTHER: {refused}"
    assert recorded.at("invoke_workflow strict", "task")["error"] == f"Exception: {refused}"
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charge")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id  # it is marked, too, and is one step


FIRST = (
    QUIET
    + """\
from crewai import LLM, Agent, Crew, Task

one = Agent(role="alone", goal="refund", backstory="none", llm=LLM("openai/gpt-4o", stream=True))
task = Task(name="notify", description="write a mail", expected_output="words", agent=one)
print(Crew(name="support", agents=[one], tasks=[task]).kickoff().raw)
"""
)

NEEDS = {"strict": {"PLAYHEAD_BOUNDARIES": "+secrets"}, "exchanges": {}}
"""By level: what makes the replay of a run identical in which CrewAI makes its key."""


@pytest.mark.parametrize(("launcher", "level"), LAUNCHERS)
def test_a_first_run_on_a_machine(record: Callable[..., Recorded], launcher: str, level: str):
    path = ":".join(map(str, (CREWAI, *APART)))
    more = {"PYTHONPATH": path, **NEEDS[level]}
    recorded = record(FIRST, "/chat/completions", answer, level, launcher=launcher, **more)
    assert (recorded.home.folder / next(iter(KEY))).exists()
    before, now = recorded.replayed()
    assert now == before
