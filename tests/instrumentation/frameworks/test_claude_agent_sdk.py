"""Spans of an unmodified program on the Claude Agent SDK, whose CLI is a stand-in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from instrumentation.frameworks.conftest import Recorded, outline
from support.servers.scripted import json_reply

from playhead_semconv import attributes as a

HERE = Path(__file__).parent
PROGRAM = (HERE / "claude_program.py").read_text("utf-8")
CLI = f"#!{sys.executable} -IS\n{(HERE / 'claude_cli.py').read_text('utf-8')}"


@pytest.fixture(scope="module")
def recorded(record: Callable[..., Recorded]) -> Recorded:
    return record(PROGRAM, "/none", json_reply({}), "strict", {"claude": CLI})


TREE = """\
invoke_agent claude session-7
  chat claude-sonnet-4-5
  execute_tool Read
  execute_tool Bash
  chat claude-sonnet-4-5
  execute_tool mcp__shop__charge
    tools/call charge
      execute_tool charge
  initialize
  notifications/initialized
  chat claude-sonnet-4-5
  execute_tool Task
    chat claude-sonnet-4-5
    execute_tool Grep
    chat claude-sonnet-4-5
  chat claude-sonnet-4-5
invoke_agent claude session-7
  chat claude-sonnet-4-5
invoke_agent claude session-7
  chat claude-sonnet-4-5
invoke_agent claude
"""


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans, a.GEN_AI_CONVERSATION_ID) == TREE.splitlines()
    assert recorded.stdout.splitlines()[1:] == ["['I remember', 'no more budget']", "ProcessError"]


def test_model_calls_and_tools(recorded: Recorded):
    chat = recorded.at("invoke_agent claude", "chat claude-sonnet-4-5")
    assert (chat[a.GEN_AI_USAGE_INPUT_TOKENS], chat[a.GEN_AI_USAGE_OUTPUT_TOKENS]) == (13, 5)
    assert (chat[a.GEN_AI_RESPONSE_ID], chat[a.GEN_AI_PROVIDER_NAME]) == ("m1", "anthropic")
    assert '"refund"' in chat[a.GEN_AI_INPUT_MESSAGES]
    assert [part["type"] for part in json.loads(chat[a.GEN_AI_OUTPUT_MESSAGES])[0]["parts"]] == [
        "text",
        "tool_call",
        "tool_call",
    ]
    read = recorded.at("invoke_agent claude", "execute_tool Read")
    assert (read[a.GEN_AI_TOOL_CALL_ID], read[a.GEN_AI_TOOL_CALL_RESULT]) == ("t1", "order 81")
    assert read[a.GEN_AI_TOOL_CALL_ARGUMENTS] == '{"path": "order"}'
    failed = recorded.at("invoke_agent claude", "execute_tool Bash")
    assert (failed[a.ERROR_TYPE], failed["error"]) == ("_OTHER", "_OTHER: not allowed")
    run = recorded.home.run("last")
    errors = [one.error for one in run.roots[0].children if one.name == "invoke_agent claude"]
    assert [bool(error) for error in errors] == [False, False, True, True]


def test_each_tool_is_one_step(recorded: Recorded):
    """Also one of the program, of which the MCP library and a marked function have spans, too."""
    run = recorded.home.run("last")
    tools = [step for step in run.steps if step.span.operation == "execute_tool"]
    names = [step.span.attributes[a.GEN_AI_TOOL_NAME] for step in tools]
    assert names == ["Read", "Bash", "mcp__shop__charge", "Task", "Grep"]
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert run.exchanges_of(tools[2]) == [exchange]
    shown = recorded.home.playhead("show", "last").stdout
    assert (shown.count("mcp__shop__charge"), shown.count("tools/call")) == (2, 0)


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before


def test_the_other_launcher(record: Callable[..., Recorded]):
    launcher = "opentelemetry-instrument"
    recorded = record(PROGRAM, "/none", json_reply({}), files={"claude": CLI}, launcher=launcher)
    assert outline(recorded.spans, a.GEN_AI_CONVERSATION_ID) == TREE.splitlines()
