"""Spans of an unmodified program on AutoGen, at each level and at a replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import LAUNCHERS, Recorded, outline
from support.servers.scripted import Reply, Request, chat_sse, json_reply, openai_chat

from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("autogen_program.py").read_text("utf-8")

CALLS: dict[str, list[tuple[str, Any]]] = {
    "triage": [("transfer_to_billing", {})],
    "billing": [("look_up", {"order": 81})],
    "failing": [("fail", {"reason": "no stock"}), ("charged", {"order": 83})],
    "boss": [("helper", {"task": "help"})],
}
"""The tools that the model of an agent calls first."""


def answer(request: Request) -> Reply:
    """Call the tools of the agent, which its system message names; then say who it is."""
    messages = request.json["messages"]
    name = messages[0]["content"]
    called = any(message["role"] == "tool" for message in messages)
    calls = [
        openai_chat.tool_call(f"call_{name}_{number}", tool, arguments)
        for number, (tool, arguments) in enumerate(() if called else CALLS.get(name, ()))
    ]
    if called and name == "triage":
        calls = []
    whole = openai_chat.completion("" if calls else f"I am {name}", tool_calls=calls)
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@pytest.fixture(scope="module", params=LAUNCHERS, ids=" ".join)
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    launcher, level = request.param
    return record(PROGRAM, "/chat/completions", answer, level, launcher=launcher)


TREE = """\
create_agent triage
create_agent billing
invoke_workflow Swarm
  invoke_agent triage
    chat gpt-4o
    execute_tool transfer_to_billing
  handoff triage to billing
  invoke_agent billing
    chat gpt-4o
    execute_tool look_up
  invoke_agent billing
    chat gpt-4o
create_agent failing
invoke_agent failing
  chat gpt-4o
  execute_tool fail
  execute_tool charged
  chat gpt-4o
create_agent helper
create_agent boss
invoke_agent boss
  chat gpt-4o
  execute_tool helper
    invoke_agent helper
      chat gpt-4o
  chat gpt-4o
create_agent first
create_agent second
invoke_workflow RoundRobinGroupChat
  invoke_agent first
    chat gpt-4o
  invoke_agent second
    chat gpt-4o
chat gpt-4o
chat gpt-4o
chat gpt-4o
chat gpt-4o
create_agent one
create_agent two
invoke_agent one
  chat gpt-4o
invoke_agent two
  chat gpt-4o
"""

PRINTED = """\
swarm I am billing
errors I am failing
nested I am boss
streamed ['I am between user', 'I am between first', 'I am between second', 'I am after']
concurrent ['I am one', 'I am two']
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert recorded.stdout == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans) == TREE.splitlines()
    assert len(recorded.home.runs()) == 1


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool look_up" in str(before)


def test_teams_and_handoffs(recorded: Recorded):
    team = recorded.at("invoke_workflow Swarm")
    assert team[a.GEN_AI_WORKFLOW_NAME] == "Swarm"
    assert team[a.GEN_AI_CONVERSATION_ID]
    handoff = recorded.at("invoke_workflow Swarm", "handoff triage to billing")
    assert handoff[a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM] == "triage"
    assert handoff[a.PLAYHEAD_FRAMEWORK_HANDOFF_TO] == "billing"
    assert recorded.at("invoke_agent boss")[a.GEN_AI_AGENT_NAME] == "boss"


def test_tools(recorded: Recorded):
    assert recorded.at("invoke_workflow Swarm", "invoke_agent billing", "execute_tool look_up") == {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "look_up",
        a.GEN_AI_TOOL_TYPE: "function",
        a.GEN_AI_TOOL_DESCRIPTION: "Look up an order.",
        a.GEN_AI_TOOL_CALL_ID: "call_billing_0",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"order": 81}',
        a.GEN_AI_TOOL_CALL_RESULT: "order 81",
        a.PLAYHEAD_FRAMEWORK_NAME: "autogen",
    }
    assert recorded.at("invoke_agent failing", "execute_tool fail")["error"] == "ValueError: no stock"


def test_a_tool_that_is_marked_is_one_step(recorded: Recorded):
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charged")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id


def test_spans_of_messages_stay_if_the_program_wants_them(record: Callable[..., Recorded]):
    environ = {"AUTOGEN_DISABLE_RUNTIME_TRACING": "false"}
    recorded = record(PROGRAM, "/chat/completions", answer, **environ)
    assert recorded.stdout == PRINTED
    (team,) = (span for span in recorded.spans if span.name == "invoke_workflow Swarm")
    assert any(span.name.startswith("autogen publish") for span in team.children)
    assert all(not span.name.startswith("autogen") for span in recorded.spans)
