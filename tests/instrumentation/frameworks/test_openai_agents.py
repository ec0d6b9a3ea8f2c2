"""Spans of an unmodified program on the OpenAI Agents SDK, at each level and at a replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import Recorded, outline
from support.long import long
from support.servers.scripted import Reply, Request, json_reply, openai_responses, responses_sse
from support.tapes.conventions import check_registered

from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("agents_program.py").read_text("utf-8")

CALLS: dict[str, list[tuple[str, Any]]] = {
    "triage": [("transfer_to_billing", {})],
    "billing": [("look_up", {"order": 81}), ("look_up", {"order": 82})],
    "failing": [("fail", {"reason": "no stock"}), ("charged", {"order": 83})],
    "boss": [("ask_helper", {"input": "help"})],
}
"""The tools that the model of an agent calls first."""


def answer(request: Request) -> Reply:
    """Call the tools of the agent, which its instructions name; then say who it is."""
    name = request.json["instructions"]
    asked = request.json["input"]
    called = {one.get("name") for one in asked if isinstance(one, dict)}
    calls = [] if called & {tool for tool, _ in CALLS.get(name, ())} else CALLS.get(name, [])
    output = [
        openai_responses.function_call(f"call_{name}_{number}", tool, arguments, id=f"fc_{number}")
        for number, (tool, arguments) in enumerate(calls)
    ]
    whole = openai_responses.response(output or [openai_responses.message(f"I am {name}")])
    return responses_sse(whole) if request.json.get("stream") else json_reply(whole)


@pytest.fixture(scope="module", params=["exchanges", long("causal"), "strict"])
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    return record(PROGRAM, "/responses", answer, request.param, OPENAI_AGENTS_DISABLE_TRACING="0")


TREE = """\
invoke_workflow refund conversation-7
  invoke_agent triage conversation-7
    chat gpt-4o
    handoff triage to billing conversation-7
  invoke_agent billing conversation-7
    chat gpt-4o
    execute_tool look_up conversation-7
    execute_tool look_up conversation-7
    chat gpt-4o
invoke_workflow failing
  invoke_agent failing
    chat gpt-4o
    execute_tool fail
    execute_tool charged
    chat gpt-4o
invoke_workflow nested
  invoke_agent boss
    chat gpt-4o
    execute_tool ask_helper
      invoke_agent helper
        chat gpt-4o
    chat gpt-4o
invoke_workflow both conversation-8
  prepare conversation-8
  invoke_agent helper conversation-8
    chat gpt-4o
  invoke_agent helper conversation-8
    chat gpt-4o
invoke_workflow streamed
  invoke_agent billing
    chat gpt-4o
    execute_tool look_up
    execute_tool look_up
    chat gpt-4o
chat gpt-4o
chat gpt-4o
chat gpt-4o
invoke_workflow passed
  invoke_agent guarded
    guardrail polite
    chat gpt-4o
invoke_workflow stopped
  invoke_agent guarded
    guardrail polite
chat gpt-4o
"""

PRINTED = """\
handoff I am billing
errors I am failing
nested I am boss
one_trace ['I am helper', 'I am helper']
streamed ['I am between', 'I am between', 'I am billing', 'I am after']
guardrails ['I am guarded', 'stopped']
untraced I am helper
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert recorded.stdout == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans, a.GEN_AI_CONVERSATION_ID) == TREE.splitlines()


def test_spans_are_those_of_the_released_conventions(recorded: Recorded):
    found = [span.attributes for root in recorded.spans for span in root.walk()]
    assert sum(map(check_registered, found)) > 50


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool ask_helper" in str(before)


def test_workflows_and_agents(recorded: Recorded):
    assert recorded.at("invoke_workflow refund") == {
        a.GEN_AI_OPERATION_NAME: "invoke_workflow",
        a.GEN_AI_AGENT_NAME: "refund",
        a.GEN_AI_CONVERSATION_ID: "conversation-7",
        a.PLAYHEAD_FRAMEWORK_NAME: "openai-agents",
    }
    assert recorded.at("invoke_workflow refund", "invoke_agent billing") == {
        a.GEN_AI_OPERATION_NAME: "invoke_agent",
        a.GEN_AI_AGENT_NAME: "billing",
        a.GEN_AI_CONVERSATION_ID: "conversation-7",
        a.PLAYHEAD_FRAMEWORK_NAME: "openai-agents",
    }


def test_tools(recorded: Recorded):
    assert recorded.at("invoke_workflow refund", "invoke_agent billing", "execute_tool look_up") == {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "look_up",
        a.GEN_AI_TOOL_TYPE: "function",
        a.GEN_AI_TOOL_CALL_ID: "call_billing_0",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"order": 81}',
        a.GEN_AI_TOOL_CALL_RESULT: "order 81",
        a.GEN_AI_CONVERSATION_ID: "conversation-7",
        a.PLAYHEAD_FRAMEWORK_NAME: "openai-agents",
    }
    failed = recorded.at("invoke_workflow failing", "invoke_agent failing", "execute_tool fail")
    assert failed["error"] == "_OTHER: Error running tool (non-fatal)"


def test_a_tool_that_is_marked_is_one_step(recorded: Recorded):
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charged")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id
    assert step.span.attributes[a.GEN_AI_TOOL_CALL_ID] == "call_failing_1"
    assert step.span.attributes[a.GEN_AI_TOOL_CALL_RESULT] == "charged 83"


def test_handoffs_and_guardrails(recorded: Recorded):
    handoff = recorded.at("invoke_workflow refund", "invoke_agent triage", "handoff triage to billing")
    assert handoff[a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM] == "triage"
    assert handoff[a.PLAYHEAD_FRAMEWORK_HANDOFF_TO] == "billing"
    for workflow, triggered in (("passed", False), ("stopped", True)):
        guardrail = recorded.at(
            f"invoke_workflow {workflow}", "invoke_agent guarded", "guardrail polite"
        )
        assert guardrail[a.PLAYHEAD_STEP_NAME] == "polite"
        assert guardrail[a.PLAYHEAD_FRAMEWORK_GUARDRAIL_TRIGGERED] is triggered


def test_without_content_names_and_ids_stay(record: Callable[..., Recorded]):
    environ = {"PLAYHEAD_CONTENT": "metadata", "OPENAI_AGENTS_DISABLE_TRACING": "0"}
    recorded = record(PROGRAM, "/responses", answer, **environ)
    assert outline(recorded.spans, a.GEN_AI_CONVERSATION_ID) == TREE.splitlines()
    tool = recorded.at("invoke_workflow refund", "invoke_agent billing", "execute_tool look_up")
    assert (tool[a.GEN_AI_TOOL_NAME], tool[a.GEN_AI_TOOL_CALL_ID]) == ("look_up", "call_billing_0")
    assert not {a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT} & tool.keys()


OWN_PACKAGE = """
import sys, types
import agents
print(agents.NAME, "playhead_instrumentation.libraries.frameworks.operation_span" in sys.modules)
"""


def test_a_package_of_the_program_with_the_same_name_is_left_alone(record: Callable[..., Recorded]):
    made = {"agents.py": "NAME = 'own'"}
    assert record(OWN_PACKAGE, "/responses", answer, files=made).stdout == "own True\n"
