"""Spans of an unmodified DSPy program, and at a replay."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from instrumentation.frameworks.conftest import LAUNCHERS, Recorded, outline
from support.servers.scripted import Reply, Request, chat_sse, json_reply, openai_chat
from support.tapes.conventions import check_content, check_registered

from playhead_semconv import attributes as a

LOCAL = "import os; os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'\n"
"""In a recording and in its replay: the library below DSPy would read prices from the network."""
PROGRAM = LOCAL + Path(__file__).with_name("dspy_program.py").read_text("utf-8")

CALLS: dict[str, list[tuple[str, str]]] = {
    "topic": [("fail", '{"reason": "no stock"}'), ("ask_billing", '{"request": "work"}')],
    "request": [("look_up", '{"order": 81}'), ("charged", '{"order": 81}')],
    "order": [("look_up", '{"order": 84}')],
}
"""The tools that an agent calls, which its first input field names."""


def answer(request: Request) -> Reply:
    """Call the tools of the agent one after the other; then say what it is."""
    system, *_, last = (str(message["content"]) for message in request.json["messages"])
    agent = re.findall(r"\d\. `(\w+)`", system)[0]
    asked = re.findall(r"\[\[ ## (\w+) ## \]\]", last.rpartition("Respond with")[2])
    calls = [*CALLS.get(agent, ()), ("finish", "{}")]
    tool, arguments = calls[last.count("[[ ## observation_")] if "next_tool_name" in asked else ("", "")
    values = {"next_thought": "I think", "next_tool_name": tool, "next_tool_args": arguments}
    text = "\n\n".join(
        f"[[ ## {field} ## ]]\n{values.get(field, f'I am {agent}')}"
        for field in asked
        if field not in ("nothing", "completed")
    )
    whole = openai_chat.completion(f"{text}\n\n[[ ## completed ## ]]")
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@pytest.fixture(
    scope="module",
    params=[LAUNCHERS[0], pytest.param(LAUNCHERS[1], marks=pytest.mark.acceptance)],
    ids=" ".join,
)
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    launcher, level = request.param
    return record(PROGRAM, "/chat/completions", answer, level, launcher=launcher)


TREE = """\
invoke_workflow Support
  triage
    chat gpt-4o
  invoke_agent agent
    chat gpt-4o
    execute_tool fail
    chat gpt-4o
    execute_tool ask_billing
      invoke_agent Billing
        chat gpt-4o
        execute_tool look_up
        chat gpt-4o
        execute_tool charged
        chat gpt-4o
        execute_tool finish
        chat gpt-4o
    chat gpt-4o
    execute_tool finish
    chat gpt-4o
  check
    chat gpt-4o
invoke_workflow Both
  side
    chat gpt-4o
  side
    chat gpt-4o
retrieval Faq
invoke_workflow Predict
  chat gpt-4o
  chat gpt-4o
invoke_workflow Predict
  chat gpt-4o
invoke_agent ReAct
  chat gpt-4o
  execute_tool look_up
  chat gpt-4o
  execute_tool finish
  chat gpt-4o
"""

PRINTED = """\
support I am draft
parallel ['I am word', 'I am word']
retrieval ['refunds: 3 days']
failing AdapterParseError
streamed ['I am word', 'I am word']
asynchronous I am order
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert recorded.stdout == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans) == TREE.splitlines()
    found = [span.attributes for root in recorded.spans for span in root.walk()]
    assert sum(check_registered(one) + check_content(one) for one in found) > 50


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool ask_billing" in str(before)


def test_agents_steps_and_errors(recorded: Recorded):
    assert recorded.at("invoke_workflow Support", "invoke_agent agent") == {
        a.GEN_AI_OPERATION_NAME: "invoke_agent",
        a.GEN_AI_AGENT_NAME: "agent",
        a.PLAYHEAD_FRAMEWORK_NAME: "dspy",
    }
    assert recorded.at("invoke_workflow Support", "triage") == {
        a.PLAYHEAD_STEP_NAME: "triage",
        a.PLAYHEAD_FRAMEWORK_NAME: "dspy",
    }
    failed = recorded.at("invoke_workflow Predict")
    assert failed[a.ERROR_TYPE] == "dspy.utils.exceptions.AdapterParseError"


def test_tools_and_retrievals(recorded: Recorded):
    agent = ("invoke_workflow Support", "invoke_agent agent")
    billing = (*agent, "execute_tool ask_billing", "invoke_agent Billing")
    assert recorded.at(*billing, "execute_tool look_up") == {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "look_up",
        a.GEN_AI_TOOL_TYPE: "function",
        a.GEN_AI_TOOL_DESCRIPTION: "Look up an order.",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"order": 81}',
        a.GEN_AI_TOOL_CALL_RESULT: "order 81",
        a.PLAYHEAD_FRAMEWORK_NAME: "dspy",
    }
    assert recorded.at(*agent, "execute_tool fail")["error"] == "ValueError: no stock"
    assert recorded.at("retrieval Faq") == {
        a.GEN_AI_OPERATION_NAME: "retrieval",
        a.GEN_AI_DATA_SOURCE_ID: "Faq",
        a.GEN_AI_RETRIEVAL_TOP_K: 2,
        a.GEN_AI_RETRIEVAL_QUERY_TEXT: "refunds",
        a.GEN_AI_RETRIEVAL_DOCUMENTS: '[{"content": "refunds: 3 days"}]',
        a.PLAYHEAD_FRAMEWORK_NAME: "dspy",
    }
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charged")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id  # it is marked, too, and is one step
