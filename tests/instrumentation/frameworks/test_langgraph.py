"""Spans of an unmodified LangGraph program, at each level and at a replay."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from instrumentation.frameworks.conftest import Recorded, outline
from support.long import long
from support.servers.scripted import Reply, Request, json_reply, openai_chat
from support.tapes.conventions import check_registered

from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("langgraph_program.py").read_text("utf-8")


def answer(request: Request) -> Reply:
    """Call the tool that the question names; else say what was asked."""
    last = request.json["messages"][-1]
    if request.json.get("tools") and last["role"] == "user":
        call = openai_chat.tool_call("call_1", "add", {"a": 1, "b": 2})
        return json_reply(openai_chat.completion(tool_calls=[call]))
    return json_reply(openai_chat.completion(f"to {last['content']}"))


@pytest.fixture(scope="module", params=["exchanges", long("causal"), "strict"])
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    return record(PROGRAM, "/chat/completions", answer, request.param)


TREE = """\
invoke_workflow outer
  plan
    chat gpt-4o
  work
    execute_tool ask_expert
      chat gpt-4o
  inside
    invoke_workflow inner
      deep
        chat gpt-4o
invoke_workflow branches
  one
    chat gpt-4o
  two
    chat gpt-4o
invoke_workflow batch
  chat gpt-4o
invoke_workflow streamed
  first
    chat gpt-4o
  second
chat gpt-4o
chat gpt-4o
invoke_workflow left
  first
    chat gpt-4o
chat gpt-4o
execute_tool look_up
execute_tool fail
execute_tool refuse
invoke_workflow handled
  tools
    execute_tool fail
invoke_workflow refund
  approve
invoke_workflow resumed
  approve
invoke_workflow charge
  decline
retrieval faq
  chat gpt-4o
invoke_agent adder
  model
    chat gpt-4o
  tools
    execute_tool add
  model
    chat gpt-4o
invoke_workflow parallel
  left
    chat gpt-4o
  right
    chat gpt-4o
  join
    chat gpt-4o
invoke_workflow astreamed
  first
    chat gpt-4o
chat gpt-4o
chat gpt-4o
invoke_workflow look
  look
    retrieval Faq
      chat gpt-4o
    chat gpt-4o
"""

PRINTED = """\
sync_graph ['to plan', 'to work', 'to plan', 'to work', 'to deep']
threads ['to one', 'to two', 'to 1']
stream ['to between', 'to between', 'to after']
tools ['order 81', 'no stock', 'closed']
interrupted ['yes']
failing card declined
retrieval to How long?
agent to 3
async_graph ['to left', 'to right', 'to join']
async_stream ['to between', 'to after']
async_retrieval ['to later?', 'to then']
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert recorded.stdout == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans) == TREE.splitlines()


def test_spans_are_those_of_the_released_conventions(recorded: Recorded):
    found = [span.attributes for root in recorded.spans for span in root.walk()]
    assert sum(map(check_registered, found)) > 50


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "invoke_workflow inner" in str(before)


def test_graphs_and_nodes(recorded: Recorded):
    assert recorded.at("invoke_workflow outer") == {
        a.GEN_AI_OPERATION_NAME: "invoke_workflow",
        a.GEN_AI_AGENT_NAME: "outer",
        a.GEN_AI_CONVERSATION_ID: "conversation-7",
        a.PLAYHEAD_FRAMEWORK_NAME: "langgraph",
    }
    node = recorded.at("invoke_workflow outer", "work")
    assert node.pop(a.PLAYHEAD_FRAMEWORK_CHECKPOINT_NAMESPACE).startswith("work:")
    assert node == {
        a.PLAYHEAD_STEP_NAME: "work",
        a.PLAYHEAD_FRAMEWORK_STEP: 2,
        a.GEN_AI_CONVERSATION_ID: "conversation-7",
        a.PLAYHEAD_FRAMEWORK_NAME: "langgraph",
    }
    agent = recorded.at("invoke_agent adder")
    assert (agent[a.GEN_AI_OPERATION_NAME], agent[a.GEN_AI_AGENT_NAME]) == ("invoke_agent", "adder")


def test_tools(recorded: Recorded):
    assert recorded.at("invoke_agent adder", "tools", "execute_tool add") == {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "add",
        a.GEN_AI_TOOL_TYPE: "function",
        a.GEN_AI_TOOL_DESCRIPTION: "Add two numbers.",
        a.GEN_AI_TOOL_CALL_ID: "call_1",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"a": 1, "b": 2}',
        a.GEN_AI_TOOL_CALL_RESULT: "3",
        a.PLAYHEAD_FRAMEWORK_NAME: "langgraph",
    }
    failed = recorded.at("execute_tool fail")
    assert (failed["error"], failed[a.ERROR_TYPE]) == ("ValueError: no stock", "ValueError")
    handled = recorded.at("invoke_workflow handled", "tools", "execute_tool fail")
    assert handled["error"] == "ValueError: gone"
    refused = recorded.at("execute_tool refuse")
    assert (refused["error"], refused[a.GEN_AI_TOOL_CALL_RESULT]) == ("_OTHER: closed", "closed")


def test_a_tool_that_is_marked_is_one_step(recorded: Recorded):
    step = next(
        one for one in recorded.home.run("last").steps if one.span.name == "execute_tool look_up"
    )
    at = step.span.attributes
    assert at[a.GEN_AI_TOOL_CALL_RESULT] == "order 81"
    (exchange,) = (one for one in recorded.home.run("last").exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id
    assert at[a.PLAYHEAD_EXCHANGE_ID] == str(exchange.id)


def test_interrupts_are_no_errors(recorded: Recorded):
    paused = recorded.at("invoke_workflow refund", "approve")
    assert "error" not in paused
    assert paused[a.PLAYHEAD_FRAMEWORK_INTERRUPT_VALUES] == '["Refund 20 EUR?"]'
    assert len(paused[a.PLAYHEAD_FRAMEWORK_INTERRUPT_IDS]) == 1
    again = recorded.at("invoke_workflow resumed")
    assert again[a.GEN_AI_CONVERSATION_ID] == "refund-7"


def test_errors_and_streams_that_are_left(recorded: Recorded):
    for path in (("invoke_workflow charge",), ("invoke_workflow charge", "decline")):
        assert recorded.at(*path)["error"] == "ValueError: card declined"
    left = recorded.at("invoke_workflow left")
    assert left[a.PLAYHEAD_END_HOW] == "abandoned"
    assert "error" not in left


def test_retrievals(recorded: Recorded):
    assert recorded.at("retrieval faq") == {
        a.GEN_AI_OPERATION_NAME: "retrieval",
        a.GEN_AI_DATA_SOURCE_ID: "faq",
        a.GEN_AI_RETRIEVAL_QUERY_TEXT: "How long?",
        a.GEN_AI_RETRIEVAL_DOCUMENTS: '[{"id": "faq-7", "content": "to How long?", "page": 3}]',
        a.PLAYHEAD_FRAMEWORK_NAME: "langchain",
    }


def test_without_content_names_and_ids_stay(record: Callable[..., Recorded]):
    recorded = record(PROGRAM, "/chat/completions", answer, PLAYHEAD_CONTENT="metadata")
    assert outline(recorded.spans) == TREE.splitlines()
    tool = recorded.at("invoke_agent adder", "tools", "execute_tool add")
    assert (tool[a.GEN_AI_TOOL_NAME], tool[a.GEN_AI_TOOL_CALL_ID]) == ("add", "call_1")
    assert not {a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT} & tool.keys()
    assert a.GEN_AI_RETRIEVAL_QUERY_TEXT not in recorded.at("retrieval faq")
    assert "Refund 20 EUR?" not in str(recorded.at("invoke_workflow refund", "approve"))


def test_show_prints_the_tree_with_numbered_steps(recorded: Recorded):
    printed = recorded.home.playhead("show", "last").stdout
    found = re.findall(r"^[ ✗] +(\d*) +\+[0-9.]+s (.{0,27})", printed, re.MULTILINE)
    assert [(number, line.rstrip()) for number, line in found[:11]] == [
        ("", "invoke_workflow outer"),
        ("", "  plan"),
        ("1", "    chat gpt-4o"),
        ("", "  work"),
        ("2", "    execute_tool ask_expert"),
        ("3", "      chat gpt-4o"),
        ("", "  inside"),
        ("", "    invoke_workflow inner"),
        ("", "      deep"),
        ("4", "        chat gpt-4o"),
        ("", "invoke_workflow branches"),
    ]
    assert "retrieval faq" in printed and "How long?" in printed
