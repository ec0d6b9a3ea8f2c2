"""Spans of an unmodified program on pydantic-ai, at each level and at a replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import LAUNCHERS, Recorded, outline
from support.servers.scripted import Reply, Request, chat_sse, json_reply, openai_chat

from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("pydantic_ai_program.py").read_text("utf-8")

CALLS: dict[str, list[list[tuple[str, Any]]]] = {
    "triage": [[("ask_billing", {"order": 81})]],
    "billing": [
        [("look_up", {"order": 81}), ("look_up", {"order": 82})],
        [("final_result", {"order": 81, "accepted": True})],
    ],
    "failing": [[("retried", {"order": 1}), ("charged", {"order": 83})], [("retried", {"order": 2})]],
    "streaming": [[("weather", {"city": "Oslo"})]],
    "broken": [[("explode", {"reason": "no stock"})]],
}
"""The tools that the model of an agent calls in each turn, until it answers."""


def answer(request: Request) -> Reply:
    """Call the tools of the agent, which its instructions name; then say who it is."""
    messages = request.json["messages"]
    name = messages[0]["content"]
    turn = sum(message["role"] == "assistant" for message in messages)
    turns = CALLS.get(name, [])
    calls = [
        openai_chat.tool_call(f"call_{name}_{turn}_{number}", tool, arguments)
        for number, (tool, arguments) in enumerate(turns[turn] if turn < len(turns) else ())
    ]
    whole = openai_chat.completion("" if calls else f"I am {name}", tool_calls=calls)
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@pytest.fixture(scope="module", params=LAUNCHERS, ids=" ".join)
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    launcher, level = request.param
    return record(PROGRAM, "/chat/completions", answer, level, launcher=launcher)


TREE = """\
invoke_agent triage conversation-7
  chat gpt-4o
  execute_tool ask_billing conversation-7
    invoke_agent billing conversation-7
      chat gpt-4o
      execute_tool look_up conversation-7
      execute_tool look_up conversation-7
      chat gpt-4o
  chat gpt-4o
invoke_agent failing conversation-8
  chat gpt-4o
  execute_tool retried conversation-8
  execute_tool charged conversation-8
  chat gpt-4o
  execute_tool retried conversation-8
  chat gpt-4o
invoke_agent broken conversation-9
  chat gpt-4o
  execute_tool explode conversation-9
invoke_agent streaming conversation-10
  chat gpt-4o
  execute_tool weather conversation-10
  chat gpt-4o
  chat gpt-4o
chat gpt-4o
invoke_agent streaming one
  chat gpt-4o
  execute_tool weather one
  chat gpt-4o
invoke_agent streaming two
  chat gpt-4o
  execute_tool weather two
  chat gpt-4o
invoke_agent streaming conversation-11
  chat gpt-4o
  execute_tool weather conversation-11
  chat gpt-4o
"""

PRINTED = """\
delegated I am triage
errors I am failing
failed no stock
streamed ['I am streaming', 'I am between', 'I am after']
concurrent ['I am streaming', 'I am streaming']
sync I am streaming
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert recorded.stdout == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans, a.GEN_AI_CONVERSATION_ID) == TREE.splitlines()


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool ask_billing" in str(before)


def test_agents(recorded: Recorded):
    found = recorded.at("invoke_agent triage", "execute_tool ask_billing", "invoke_agent billing")
    assert found[a.GEN_AI_OPERATION_NAME] == "invoke_agent"
    assert found[a.GEN_AI_AGENT_NAME] == "billing"
    assert found[a.PLAYHEAD_FRAMEWORK_NAME] == "pydantic-ai"
    assert recorded.at("invoke_agent broken")["error"] == "ValueError: no stock"


def test_tools(recorded: Recorded):
    found = recorded.at("invoke_agent streaming", "execute_tool weather")
    assert found[a.GEN_AI_TOOL_NAME] == "weather"
    assert found[a.GEN_AI_TOOL_CALL_ID] == "call_streaming_0_0"
    assert found[a.GEN_AI_TOOL_CALL_ARGUMENTS] == '{"city":"Oslo"}'
    assert found[a.GEN_AI_TOOL_CALL_RESULT] == "Oslo: sun"
    explode = recorded.at("invoke_agent broken", "execute_tool explode")
    assert explode["error"] == "ValueError: no stock"
    retried = recorded.at("invoke_agent failing", "execute_tool retried")
    assert retried["error"] == "pydantic_ai.exceptions.ToolRetryError: try the next order"


def test_each_call_and_each_token_count_once(recorded: Recorded):
    run = recorded.home.run("last")
    assert [step.span.name for step in run.steps].count("chat gpt-4o") == TREE.count("chat gpt-4o")
    (shown,) = recorded.home.runs()
    assert shown["input_tokens"] == 12 * TREE.count("chat gpt-4o")


def test_a_tool_that_is_marked_is_one_step(recorded: Recorded):
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charged")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id
    assert step.span.attributes[a.GEN_AI_TOOL_CALL_RESULT] == "charged 83"


def test_without_content_names_and_ids_stay(record: Callable[..., Recorded]):
    recorded = record(PROGRAM, "/chat/completions", answer, PLAYHEAD_CONTENT="metadata")
    assert outline(recorded.spans, a.GEN_AI_CONVERSATION_ID) == TREE.splitlines()
    tool = recorded.at("invoke_agent streaming", "execute_tool weather")
    assert tool[a.GEN_AI_TOOL_CALL_ID] == "call_streaming_0_0"
    assert "Oslo" not in str(tool)


INSTRUMENTED = """
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
{}
agent = Agent(OpenAIChatModel("gpt-4o"), name="streaming", instructions="streaming")

@agent.tool_plain
def weather(city: str) -> str:
    return f"{{city}}: sun"

print(agent.run_sync("weather").output)
"""


@pytest.mark.parametrize(
    ("choice", "agents", "frames"),
    [
        ("Agent.instrument_all(InstrumentationSettings(include_content=False))", 1, 2),
        ("Agent.instrument_all(False)", 0, 0),
    ],
)
def test_what_the_program_chooses_wins(
    record: Callable[..., Recorded], choice: str, agents: int, frames: int
):
    recorded = record(INSTRUMENTED.format(choice), "/chat/completions", answer)
    assert recorded.stdout == "I am streaming\n"
    lines = [line.strip() for line in outline(recorded.spans)]
    assert lines.count("invoke_agent streaming") == agents
    assert lines.count("chat gpt-4o") == 2 + frames  # the program's spans are around ours
    run = recorded.home.run("last")
    assert [step.span.name for step in run.steps].count("chat gpt-4o") == 2
