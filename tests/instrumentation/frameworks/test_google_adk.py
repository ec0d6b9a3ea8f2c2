"""Spans of an unmodified program on Google's Agent Development Kit, and at a replay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import LAUNCHERS, Recorded, outline
from support.servers.scripted import Reply, Request, json_reply, sse_reply

from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("google_adk_program.py").read_text("utf-8")
MODEL = "/v1beta/models/gemini-2.5-flash"
PATHS = f"{MODEL}:streamGenerateContent {MODEL}:generateContent"

CALLS: dict[str, tuple[str, Any]] = {
    "triage": ("transfer_to_agent", {"agent_name": "billing"}),
    "billing": ("look_up", {"order": 81}),
    "marked": ("charged", {"order": 83}),
    "boss": ("helper", {"request": "help"}),
    "failing": ("fail", {"reason": "no stock"}),
}
"""The tool that the model of an agent calls first."""


def answer(request: Request) -> Reply:
    """Call the tool of the agent, which its instruction names; then say who it is."""
    name = request.json["systemInstruction"]["parts"][0]["text"].split()[0]
    tool, arguments = CALLS.get(name, ("", {}))
    parts = [part for content in request.json["contents"] for part in content["parts"]]
    called = any(part.get("functionResponse", {}).get("name") == tool for part in parts)
    part: dict[str, Any] = {"text": f"I am {name}"}
    if tool and not called:
        part = {"functionCall": {"id": f"call_{name}", "name": tool, "args": arguments}}
    whole = {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 5, "totalTokenCount": 17},
        "modelVersion": "gemini-2.5-flash",
        "responseId": f"response-{name}-{len(parts)}",
    }
    if "stream" not in request.path:
        return json_reply(whole)
    return sse_reply([f"data: {json.dumps(whole)}\r\n\r\n".encode()])


@pytest.fixture(scope="module", params=LAUNCHERS, ids=" ".join)
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    launcher, level = request.param
    return record(PROGRAM, PATHS, answer, level, launcher=launcher)


TREE = """\
invoke_workflow triage conversation-triage
  invoke_agent triage conversation-triage
    CALL conversation-triage
      CALL
    execute_tool transfer_to_agent
  invoke_agent billing conversation-triage
    CALL conversation-triage
      CALL
    execute_tool look_up
    CALL conversation-triage
      CALL
invoke_workflow marked conversation-marked
  invoke_agent marked conversation-marked
    CALL conversation-marked
      CALL
    execute_tool charged
    CALL conversation-marked
      CALL
invoke_workflow boss conversation-boss
  invoke_agent boss conversation-boss
    CALL conversation-boss
      CALL
    execute_tool helper
      invoke_workflow helper
        invoke_agent helper
          CALL
            CALL
    CALL conversation-boss
      CALL
invoke_workflow sequence conversation-sequence
  invoke_agent sequence conversation-sequence
    invoke_agent first conversation-sequence
      CALL conversation-sequence
        CALL
    invoke_agent second conversation-sequence
      CALL conversation-sequence
        CALL
invoke_workflow parallel conversation-parallel
  invoke_agent parallel conversation-parallel
    invoke_agent left conversation-parallel
      CALL conversation-parallel
        CALL
    invoke_agent right conversation-parallel
      CALL conversation-parallel
        CALL
invoke_workflow failing conversation-failing
  invoke_agent failing conversation-failing
    CALL conversation-failing
      CALL
    execute_tool fail
"""
"""A span of the framework is around each model call, and is no step."""

PRINTED = """\
triage ['I am billing']
marked ['I am marked']
boss ['I am boss']
sequence ['I am first', 'I am second']
parallel ['I am left', 'I am right']
failing no stock
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert recorded.stdout == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    lines = outline(recorded.spans, a.GEN_AI_CONVERSATION_ID)
    named = [
        # the session of an agent that is a tool has an id of its own
        re.sub(" [0-9a-f]{8}-[-0-9a-f]{27}$", "", line).replace(
            "generate_content gemini-2.5-flash", "CALL"
        )
        for line in lines
    ]
    assert named == TREE.splitlines()


def test_each_call_and_each_token_count_once(recorded: Recorded):
    run = recorded.home.run("last")
    calls = [step for step in run.steps if step.span.name.startswith("generate_content")]
    assert len(calls) == TREE.count("CALL") // 2
    (shown,) = recorded.home.runs()
    assert shown["input_tokens"] == 12 * len(calls)


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool look_up" in str(before)


def test_tools(recorded: Recorded):
    found = recorded.at("invoke_workflow triage", "invoke_agent billing", "execute_tool look_up")
    assert found[a.GEN_AI_TOOL_NAME] == "look_up"
    assert found[a.GEN_AI_AGENT_NAME] == "billing"
    assert found[a.GEN_AI_TOOL_CALL_ID] == "call_billing"
    assert found[a.GEN_AI_TOOL_CALL_ARGUMENTS] == '{"order": 81}'
    assert found[a.GEN_AI_TOOL_CALL_RESULT] == '{"result": "order 81"}'
    assert found[a.PLAYHEAD_FRAMEWORK_NAME] == "google-adk"


def test_a_tool_that_is_marked_is_one_step(recorded: Recorded):
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charged")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id


def test_without_content_names_and_ids_stay(record: Callable[..., Recorded]):
    recorded = record(PROGRAM, PATHS, answer, PLAYHEAD_CONTENT="metadata")
    found = [step.span.attributes for step in recorded.home.run("last").steps]
    (tool,) = (one for one in found if one.get(a.GEN_AI_TOOL_NAME) == "look_up")
    assert tool[a.GEN_AI_TOOL_CALL_ID] == "call_billing"
    assert not {a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT} & tool.keys()
