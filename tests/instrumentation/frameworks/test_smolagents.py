"""Spans of an unmodified smolagents program, at each level and at a replay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import Recorded, outline
from support.long import long
from support.servers.scripted import Reply, Request, json_reply, openai_chat

from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("smolagents_program.py").read_text("utf-8")

CALLS: dict[str, list[tuple[str, Any]]] = {
    "billing": [("look_up", {"order": 81}), ("ask_expert", {"question": "work"})],
    "failing": [("fail", {"reason": "no stock"}), ("charged", {"order": 83})],
    "boss": [("helper", {"task": "help"})],
    "streamed": [("look_up", {"order": 84})],
    "left": [("look_up", {"order": 85})],
}
"""The tools that the model of an agent calls first."""
CODE = "Thoughts.\n<code>\nfinal_answer(look_up(order=82))\n</code>"


def answer(request: Request) -> Reply:
    """Call the tools of the agent, which its task names; then its final answer."""
    messages = json.dumps(request.json["messages"])
    task = re.search(r"New task:\\+n(\w+):", messages)
    if task is not None and task[1] == "coder":
        return json_reply(openai_chat.completion(CODE))
    tools = {one["function"]["name"] for one in request.json.get("tools", ())}
    if not tools:
        return json_reply(openai_chat.completion("I am an expert"))
    name = "helper" if task is None else task[1]
    calls = CALLS.get(name, [])
    if not calls or len(request.json["messages"]) > 2 or "no stock" in messages:
        calls = [("final_answer", {"answer": f"I am {name}"})]
    return json_reply(
        openai_chat.completion(
            tool_calls=[
                openai_chat.tool_call(f"call_{name}_{number}", tool, arguments)
                for number, (tool, arguments) in enumerate(calls)
            ]
        )
    )


@pytest.fixture(scope="module", params=["exchanges", long("causal"), "strict"])
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    return record(PROGRAM, "/chat/completions", answer, request.param)


TREE = """\
invoke_agent billing
  chat gpt-4o
  execute_tool look_up
  execute_tool ask_expert
    chat gpt-4o
  chat gpt-4o
  execute_tool final_answer
invoke_agent failing
  chat gpt-4o
  execute_tool fail
  execute_tool charged
  chat gpt-4o
  execute_tool final_answer
invoke_agent boss
  chat gpt-4o
  execute_tool helper
    invoke_agent helper
      chat gpt-4o
      execute_tool final_answer
  chat gpt-4o
  execute_tool final_answer
invoke_agent coder
  chat gpt-4o
  execute_tool look_up
  execute_tool final_answer
invoke_agent streamed
  chat gpt-4o
  execute_tool look_up
  chat gpt-4o
  execute_tool final_answer
chat gpt-4o
chat gpt-4o
invoke_agent left
  chat gpt-4o
chat gpt-4o
execute_tool look_up
"""

PRINTED = """\
two_tools I am billing
errors I am failing
team I am boss
code order 82
stream ['I am an expert', 'I am an expert', 'generator ignored GeneratorExit', 'I am an expert']
direct order 80
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    lines = recorded.stdout.splitlines(keepends=True)  # also those of errors, which the agent prints
    assert "".join(line for line in lines if line in PRINTED.splitlines(keepends=True)) == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans) == TREE.splitlines()


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool ask_expert" in str(before)


def test_agents_and_tools(recorded: Recorded):
    assert recorded.at("invoke_agent boss", "execute_tool helper", "invoke_agent helper") == {
        a.GEN_AI_OPERATION_NAME: "invoke_agent",
        a.GEN_AI_AGENT_NAME: "helper",
        a.PLAYHEAD_FRAMEWORK_NAME: "smolagents",
    }
    assert recorded.at("execute_tool look_up") == {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "look_up",
        a.GEN_AI_TOOL_TYPE: "function",
        a.GEN_AI_TOOL_DESCRIPTION: "Look up an order.",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"order": 80}',
        a.GEN_AI_TOOL_CALL_RESULT: "order 80",
        a.PLAYHEAD_FRAMEWORK_NAME: "smolagents",
    }
    coded = recorded.at("invoke_agent coder", "execute_tool look_up")
    assert coded[a.GEN_AI_TOOL_CALL_ARGUMENTS] == '{"order": 82}'
    failed = recorded.at("invoke_agent failing", "execute_tool fail")
    assert failed[a.ERROR_TYPE].endswith("AgentToolExecutionError")
    assert "ValueError: no stock" in failed["error"]


def test_a_tool_that_is_marked_is_one_step(recorded: Recorded):
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charged")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id
    assert step.span.attributes[a.GEN_AI_TOOL_CALL_RESULT] == "charged 83"


def test_a_stream_that_is_left(recorded: Recorded):
    assert recorded.at("invoke_agent left")[a.PLAYHEAD_END_HOW] == "abandoned"


def test_without_content_names_stay(record: Callable[..., Recorded]):
    recorded = record(PROGRAM, "/chat/completions", answer, PLAYHEAD_CONTENT="metadata")
    assert outline(recorded.spans) == TREE.splitlines()
    tool = recorded.at("execute_tool look_up")
    assert not {a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT} & tool.keys()
