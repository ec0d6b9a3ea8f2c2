"""Spans of an unmodified Haystack program, at each level and at a replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import Recorded, outline
from support.long import long
from support.servers.scripted import Reply, Request, chat_sse, json_reply, openai_chat

from playhead_semconv import attributes as a

QUIET = "import os; os.environ['HAYSTACK_TELEMETRY_ENABLED'] = 'false'\n"
"""In a recording and in its replay: Haystack would post to its vendor."""
PROGRAM = QUIET + Path(__file__).with_name("haystack_program.py").read_text("utf-8")

CALLS: dict[str, list[tuple[str, Any]]] = {
    "billing": [("look_up", {"order": 81}), ("ask_expert", {"text": "work"})],
    "failing": [("fail", {"text": "no stock"}), ("charged", {"order": 83})],
    "later": [("look_up", {"order": 84})],
}
"""The tools that the model of an agent calls first."""


def answer(request: Request) -> Reply:
    """Call the tools of the agent, which its first message names; then say who it is."""
    messages = request.json["messages"]
    name = str(messages[0]["content"])
    calls = [] if len(messages) > 2 else CALLS.get(name, [])
    whole = openai_chat.completion(
        None if calls else f"I am {name}",
        tool_calls=[
            openai_chat.tool_call(f"call_{name}_{number}", tool, arguments)
            for number, (tool, arguments) in enumerate(calls)
        ],
    )
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@pytest.fixture(scope="module", params=["exchanges", long("causal"), "strict"])
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    return record(PROGRAM, "/chat/completions", answer, request.param)


TREE = """\
invoke_workflow pipeline
  retrieval faq
  prompt
  model
    chat gpt-4o
invoke_workflow pipeline
  billing
    invoke_agent billing
      chat gpt-4o
      execute_tool look_up
      execute_tool ask_expert
        chat gpt-4o
      chat gpt-4o
invoke_agent agent
  chat gpt-4o
  execute_tool fail
  execute_tool charged
  chat gpt-4o
invoke_workflow pipeline
  retrieval faq
invoke_workflow pipeline
  retrieval faq
  prompt
  model
    chat gpt-4o
invoke_agent agent
  chat gpt-4o
  execute_tool look_up
  chat gpt-4o
"""

PRINTED = """\
query I am Refunds take 3 days. How long?
one_agent ['I am billing', 'I am billing']
errors I am failing
failing PipelineRuntimeError
async_query I am Refunds take 3 days. How long?
async_agent I am later
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert recorded.stdout == PRINTED


def test_each_operation_is_inside_of_the_one_that_calls_it(recorded: Recorded):
    assert outline(recorded.spans) == TREE.splitlines()


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "execute_tool ask_expert" in str(before)


def test_pipelines_components_and_agents(recorded: Recorded):
    assert recorded.at("invoke_workflow pipeline") == {
        a.GEN_AI_OPERATION_NAME: "invoke_workflow",
        a.GEN_AI_WORKFLOW_NAME: "pipeline",
        a.PLAYHEAD_FRAMEWORK_NAME: "haystack",
    }
    assert recorded.at("invoke_workflow pipeline", "prompt") == {
        a.PLAYHEAD_STEP_NAME: "prompt",
        a.PLAYHEAD_FRAMEWORK_NAME: "haystack",
    }
    agent = operations_of(recorded)["invoke_agent billing"]
    assert agent == {
        a.GEN_AI_OPERATION_NAME: "invoke_agent",
        a.GEN_AI_AGENT_NAME: "billing",
        a.PLAYHEAD_FRAMEWORK_NAME: "haystack",
    }


def test_tools(recorded: Recorded):
    assert operations_of(recorded)["execute_tool look_up"] == {
        a.GEN_AI_OPERATION_NAME: "execute_tool",
        a.GEN_AI_TOOL_NAME: "look_up",
        a.GEN_AI_TOOL_TYPE: "function",
        a.GEN_AI_TOOL_DESCRIPTION: "Look up an order.",
        a.GEN_AI_TOOL_CALL_ID: "call_billing_0",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"order": 81}',
        a.GEN_AI_TOOL_CALL_RESULT: "order 81",
        a.PLAYHEAD_FRAMEWORK_NAME: "haystack",
    }
    failed = operations_of(recorded)["execute_tool fail"]
    assert failed[a.ERROR_TYPE] == "_OTHER"
    assert "no stock" in failed[a.GEN_AI_TOOL_CALL_RESULT]


def test_a_tool_that_is_marked_is_one_step(recorded: Recorded):
    run = recorded.home.run("last")
    (step,) = (step for step in run.steps if step.span.name == "execute_tool charged")
    (exchange,) = (one for one in run.exchanges if one.id.kind == "tool")
    assert exchange.span_id == step.span.span_id
    assert step.span.attributes[a.GEN_AI_TOOL_CALL_ID] == "call_failing_1"


def test_retrievals(recorded: Recorded):
    found = recorded.at("invoke_workflow pipeline", "retrieval faq")
    (document,) = json.loads(found.pop(a.GEN_AI_RETRIEVAL_DOCUMENTS))
    assert document.pop("score") > 0
    assert document == {"id": "faq-7", "content": "Refunds take 3 days.", "page": 3}
    assert found == {
        a.GEN_AI_OPERATION_NAME: "retrieval",
        a.GEN_AI_DATA_SOURCE_ID: "faq",
        a.GEN_AI_RETRIEVAL_QUERY_TEXT: "refunds",
        a.PLAYHEAD_FRAMEWORK_NAME: "haystack",
    }


def test_errors_of_components(recorded: Recorded):
    failed = [one for one in recorded.spans if one.error]
    assert [one.name for one in failed] == ["invoke_workflow pipeline"]
    assert [one.name for one in failed[0].children] == ["retrieval faq"]
    assert "PipelineRuntimeError" in str(failed[0].children[0].error)


def test_without_content_names_and_ids_stay(record: Callable[..., Recorded]):
    recorded = record(PROGRAM, "/chat/completions", answer, PLAYHEAD_CONTENT="metadata")
    assert outline(recorded.spans) == TREE.splitlines()
    tool = operations_of(recorded)["execute_tool look_up"]
    assert tool[a.GEN_AI_TOOL_CALL_ID] == "call_billing_0"
    assert not {a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT} & tool.keys()


TRACED = f"""
{QUIET}
from contextlib import contextmanager

from haystack import tracing
from haystack.tracing import Span, Tracer


class Printed(Span):
    def set_tag(self, key, value):
        pass


class Printer(Tracer):
    @contextmanager
    def trace(self, operation_name, tags=None, parent_span=None):
        assert parent_span is None or type(parent_span) is Printed
        print("span", operation_name)
        yield Printed()

    def current_span(self):
        return None


tracing.enable_tracing(Printer())
"""


def test_the_tracer_of_the_program_gets_its_spans(record: Callable[..., Recorded]):
    recorded = record(TRACED + PROGRAM, "/chat/completions", answer)
    lines = recorded.stdout.splitlines(keepends=True)
    assert "".join(line for line in lines if not line.startswith("span ")) == PRINTED
    assert lines.count("span haystack.agent.step.tool\n") == 5
    assert outline(recorded.spans) == TREE.splitlines()


def operations_of(recorded: Recorded) -> dict[str, dict[str, Any]]:
    """Attributes of the first span of each name."""
    found: dict[str, dict[str, Any]] = {}
    open_spans = list(recorded.spans)
    while open_spans:
        span = open_spans.pop(0)
        found.setdefault(span.name, span.attributes)
        open_spans = [*span.children, *open_spans]
    return found
