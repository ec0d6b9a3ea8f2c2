"""Spans of an unmodified LlamaIndex program, at each level and at a replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import Recorded, outline
from support.long import long
from support.servers.scripted import (
    Reply,
    Request,
    chat_sse,
    json_reply,
    openai_chat,
    openai_embeddings,
)

from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("llama_index_program.py").read_text("utf-8")
PATHS = "/chat/completions /embeddings"

CALLS: dict[str, list[tuple[str, Any]]] = {
    "billing": [("look_up", {"order": 81}), ("ask_expert", {"question": "work"})],
    "failing": [("fail", {"reason": "no stock"}), ("charged", {"order": 83})],
    "triage": [("handoff", {"to_agent": "refunds", "reason": "money"})],
    "refunds": [("look_up", {"order": 82})],
}
"""The tools that the model of an agent calls first."""


def answer(request: Request) -> Reply:
    """Call the tools of the agent, which its first message names; then repeat the last message."""
    if request.path.endswith("/embeddings"):
        texts = request.json["input"]
        return json_reply(openai_embeddings.embeddings([[1.0, 0.5] for _ in texts]))
    messages = request.json["messages"]
    name = messages[0]["content"].splitlines()[0]
    called = {call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()}
    calls = [
        openai_chat.tool_call(f"call_{name}_{number}", tool, arguments)
        for number, (tool, arguments) in enumerate(CALLS.get(name, ()))
        if tool not in called
    ]
    whole = (
        openai_chat.completion(tool_calls=calls)
        if calls
        else openai_chat.completion(f"to {messages[-1]['content']}")
    )
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@pytest.fixture(scope="module", params=["exchanges", long("causal"), "strict"])
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    return record(PROGRAM, PATHS, answer, request.param)


TREE = """\
execute_tool ask_expert
  chat gpt-4o
embeddings text-embedding-ada-002
retrieval VectorIndexRetriever
  embeddings text-embedding-ada-002
invoke_workflow RetrieverQueryEngine
  retrieval VectorIndexRetriever
    embeddings text-embedding-ada-002
  chat gpt-4o
execute_tool faq
  invoke_workflow RetrieverQueryEngine
    retrieval VectorIndexRetriever
      embeddings text-embedding-ada-002
    chat gpt-4o
invoke_agent billing
  chat gpt-4o
  execute_tool look_up
  execute_tool ask_expert
    chat gpt-4o
  chat gpt-4o
invoke_agent failing
  chat gpt-4o
  execute_tool fail
  execute_tool charged
  chat gpt-4o
invoke_workflow AgentWorkflow
  invoke_agent triage
    chat gpt-4o
  execute_tool handoff
  invoke_agent refunds
    chat gpt-4o
  execute_tool look_up
  invoke_agent refunds
    chat gpt-4o
chat gpt-4o
chat gpt-4o
invoke_workflow Flow
  plan
    chat gpt-4o
  work
    chat gpt-4o
  work
    chat gpt-4o
  join
  join
invoke_workflow Failing
  decline
invoke_workflow Endless
  hang
chat gpt-4o
invoke_workflow ContextChatEngine
  retrieval SummaryIndexRetriever
  chat gpt-4o
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert "one_agent to to work\nerrors to charged 83\n" in recorded.stdout
    assert "handoff ['to between', 'to between', 'to order 82']\n" in recorded.stdout
    assert "cancelled ['WorkflowCancelledByUser', 'to after']\nchat to How long?\n" in recorded.stdout


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans) == TREE.splitlines()


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool ask_expert" in str(before)


def test_workflows_agents_and_steps(recorded: Recorded):
    assert recorded.at("invoke_workflow AgentWorkflow") == {
        a.GEN_AI_OPERATION_NAME: "invoke_workflow",
        a.GEN_AI_WORKFLOW_NAME: "AgentWorkflow",
        a.PLAYHEAD_FRAMEWORK_NAME: "llama-index",
    }
    assert recorded.at("invoke_workflow AgentWorkflow", "invoke_agent refunds") == {
        a.GEN_AI_OPERATION_NAME: "invoke_agent",
        a.GEN_AI_AGENT_NAME: "refunds",
        a.PLAYHEAD_FRAMEWORK_NAME: "llama-index",
    }
    assert recorded.at("invoke_workflow Flow", "plan") == {
        a.PLAYHEAD_STEP_NAME: "plan",
        a.PLAYHEAD_FRAMEWORK_NAME: "llama-index",
    }


def test_tools(recorded: Recorded):
    assert recorded.at("invoke_agent billing", "execute_tool look_up") == {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "look_up",
        a.GEN_AI_TOOL_TYPE: "function",
        a.GEN_AI_TOOL_CALL_ID: "call_billing_0",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"order": 81}',
        a.GEN_AI_TOOL_CALL_RESULT: "order 81",
        a.PLAYHEAD_FRAMEWORK_NAME: "llama-index",
    }
    direct = recorded.at("execute_tool ask_expert")
    assert direct[a.GEN_AI_TOOL_CALL_ARGUMENTS] == '{"question": "direct"}'
    assert "Ask another model." in direct[a.GEN_AI_TOOL_DESCRIPTION]
    failed = recorded.at("invoke_agent failing", "execute_tool fail")
    assert (failed["error"], failed[a.ERROR_TYPE]) == ("ValueError: no stock", "ValueError")
    handoff = recorded.at("invoke_workflow AgentWorkflow", "execute_tool handoff")
    assert handoff[a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM] == "triage"
    assert handoff[a.PLAYHEAD_FRAMEWORK_HANDOFF_TO] == "refunds"


def test_a_tool_that_is_marked_is_one_step(recorded: Recorded):
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charged")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id
    assert step.span.attributes[a.GEN_AI_TOOL_CALL_ID] == "call_failing_1"


def test_retrievals(recorded: Recorded):
    found = recorded.at("retrieval VectorIndexRetriever")
    (document,) = json.loads(found.pop(a.GEN_AI_RETRIEVAL_DOCUMENTS))
    assert (document["content"], document["page"]) == ("Refunds take 3 days.", 3)
    assert document["id"] and document["score"] > 0.9
    assert found == {
        a.GEN_AI_OPERATION_NAME: "retrieval",
        a.GEN_AI_DATA_SOURCE_ID: "VectorIndexRetriever",
        a.GEN_AI_RETRIEVAL_QUERY_TEXT: "How long?",
        a.PLAYHEAD_FRAMEWORK_NAME: "llama-index",
    }


def test_errors_and_runs_that_are_cancelled(recorded: Recorded):
    for path in (("invoke_workflow Failing",), ("invoke_workflow Failing", "decline")):
        assert recorded.at(*path)["error"] == "ValueError: card declined"
    assert "error" not in recorded.at("invoke_workflow Endless")


def test_without_content_names_and_ids_stay(record: Callable[..., Recorded]):
    recorded = record(PROGRAM, PATHS, answer, PLAYHEAD_CONTENT="metadata")
    assert outline(recorded.spans) == TREE.splitlines()
    tool = recorded.at("invoke_agent billing", "execute_tool look_up")
    assert (tool[a.GEN_AI_TOOL_NAME], tool[a.GEN_AI_TOOL_CALL_ID]) == ("look_up", "call_billing_0")
    assert not {a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT} & tool.keys()
    assert a.GEN_AI_RETRIEVAL_QUERY_TEXT not in recorded.at("retrieval VectorIndexRetriever")
