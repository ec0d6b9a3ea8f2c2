"""Spans of an unmodified program on the Claude Agent SDK, whose CLI is a stand-in."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from instrumentation.frameworks.conftest import Recorded, outline
from support.servers.scripted import json_reply

from playhead_semconv import attributes as a

HERE = Path(__file__).parent
PROGRAM = (HERE / "claude_program.py").read_text("utf-8")
CONTROL = (HERE / "claude_control_program.py").read_text("utf-8")
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
    before, now = recorded.replayed()
    assert now == before


CONTROLLED = """\
invoke_agent claude
  chat claude-sonnet-4-5
invoke_agent claude
  chat claude-sonnet-4-5
invoke_agent claude
  chat claude-sonnet-4-5
  execute_tool Bash
  chat claude-sonnet-4-5
invoke_agent claude
  chat claude-sonnet-4-5
  chat claude-sonnet-4-5
invoke_agent claude
  chat claude-sonnet-4-5
invoke_agent claude
  chat claude-sonnet-4-5
invoke_agent claude
"""

PRINTED = """\
SystemMessage
I remember
success
SystemMessage
no more budget
error_max_budget_usd
hook Bash
may Bash {'command': 'ls'}
['SystemMessage', '', '[{"systemMessage": "look first"}, {"behavior": "allow", "updatedInput": \
{"command": "ls"}}]', 'Done.', 'success']
['careful']
SystemMessage
I begin.
interrupt
success
left
ProcessError Command failed with exit code 3 (exit code: 3)
Error output: Check stderr output for details
CLIConnectionError Cannot write to terminated process (exit code: 3)
CLINotFoundError Claude Code not found at: /nowhere/claude
"""


@pytest.fixture(scope="module")
def controlled(record: Callable[..., Recorded], tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Streamed prompts, callbacks, an interrupt, processes that end or are missing.

    The CLI is found on the path when it is recorded, and is gone afterwards.
    """
    cli = tmp_path_factory.mktemp("bin") / "claude"
    cli.write_text(CLI)
    cli.chmod(0o755)
    path = f"{cli.parent}:{os.environ['PATH']}"
    launcher = "opentelemetry-instrument"
    recorded = record(CONTROL, "/none", json_reply({}), launcher=launcher, PATH=path)
    cli.unlink()
    return recorded


def test_callbacks_interrupts_and_ends_of_the_process(controlled: Recorded):
    assert controlled.stdout == PRINTED
    assert outline(controlled.spans) == CONTROLLED.splitlines()
    assert "not ended" not in controlled.home.playhead("show", "last").stdout
    replayed = controlled.home.playhead("replay", "last", "--output")
    assert replayed.returncode == 0, replayed.stdout
    assert PRINTED in replayed.stderr
    before, now = controlled.replayed()
    assert now == before


def test_a_replay_compares_what_is_sent(controlled: Recorded):
    home = controlled.home
    changed = CONTROL.replace("look first", "look again")
    script = home.folder / "agent.py"
    script.write_text(changed)
    try:
        status, report = home.report("last", "--force")
    finally:
        script.write_text(CONTROL)
    assert (status, report["verdict"]) == (3, "blocked")
