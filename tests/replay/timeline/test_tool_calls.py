"""Tool calls that the messages of a run report."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from playhead_replay import Run
from playhead_replay.timeline.tool_calls import ToolCallStep, tool_calls_of
from playhead_semconv import attributes as a

TRACE = b"t" * 16
MS = 1_000_000


def call(name: str, id: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "arguments": arguments} | ({"id": id} if id else {})


def result(response: Any, id: str | None = None, **extras: Any) -> dict[str, Any]:
    part = {"type": "tool_call_response", "response": response, **extras}
    return part | ({"id": id} if id else {})


class Agent:
    """Makes the spans of a run, each 10 ms after the one before."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.history: list[dict[str, Any]] = [
            {"role": "user", "parts": [{"type": "text", "content": "go"}]}
        ]
        self._clock = itertools.count(1)

    def chat(self, *calls: dict[str, Any]) -> None:
        answer = {
            "role": "assistant",
            "parts": [*calls] or [{"type": "text", "content": "done"}],
        }
        self.span(
            "chat m",
            {
                a.GEN_AI_OPERATION_NAME: "chat",
                a.GEN_AI_REQUEST_MODEL: "m",
                a.GEN_AI_INPUT_MESSAGES: json.dumps(self.history),
                a.GEN_AI_OUTPUT_MESSAGES: json.dumps([answer]),
            },
        )
        self.history.append(answer)

    def tool(self, *results: dict[str, Any]) -> None:
        self.history.append({"role": "tool", "parts": [*results]})

    def span(self, name: str, attributes: dict[str, str], *, failed: bool = False) -> None:
        number = next(self._clock)
        self.spans.append(
            Span(
                trace_id=TRACE,
                span_id=number.to_bytes(8, "big"),
                name=name,
                kind=Span.SPAN_KIND_CLIENT,
                start_time_unix_nano=number * 10 * MS,
                end_time_unix_nano=number * 10 * MS + 4 * MS,
                attributes=[KeyValue(key=key, value=_value(one)) for key, one in attributes.items()],
                status=Status(code=Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_UNSET),
            )
        )

    def run(self, status: str = "success") -> Run:
        sent = ResourceSpans(scope_spans=[ScopeSpans(spans=self.spans)])
        run = Run.of_tapes([], [sent.SerializeToString()], "x")
        run.status = status
        return run


def _value(value: Any) -> AnyValue:
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=map(_value, value)))
    return AnyValue(string_value=value)


def told(calls: Sequence[ToolCallStep]) -> list[tuple[str, str, Any, Any]]:
    return [(one.number, one.name, one.arguments, one.result) for one in calls]


def test_a_call_and_its_result_are_a_step():
    agent = Agent()
    agent.chat(call("search", "c1", q="tea"))
    agent.tool(result("green", "c1"))
    agent.chat()
    [found] = tool_calls_of(agent.run())
    assert told([found]) == [("1.1", "search", {"q": "tea"}, "green")]
    assert (found.started_ns, found.ended_ns, found.duration_ns) == (14 * MS, 20 * MS, 6 * MS)
    assert (found.is_derived, found.error, found.attempt) == (True, "", 1)


def test_calls_of_one_answer_get_their_own_results_in_any_order():
    agent = Agent()
    agent.chat(call("search", "c1", q="tea"), call("search", "c2", q="pot"))
    agent.tool(result("2", "c2"), result("1", "c1"))
    agent.chat()
    assert [(one.number, one.result) for one in tool_calls_of(agent.run())] == [
        ("1.1", "1"),
        ("1.2", "2"),
    ]


def test_a_server_may_use_an_id_again():
    agent = Agent()
    for number in range(3):
        agent.chat(call("search", "call_0", q=str(number)))
        agent.tool(result(f"r{number}", "call_0"))
    agent.chat()
    found = [(one.number, one.arguments["q"], one.result) for one in tool_calls_of(agent.run())]
    assert found == [("1.1", "0", "r0"), ("2.1", "1", "r1"), ("3.1", "2", "r2")]


def test_calls_without_ids_are_matched_by_name_and_order():
    agent = Agent()
    agent.chat(call("read", path="a"), call("look", at="b"), call("read", path="c"))
    agent.tool(result("B", name="look"), result("A", name="read"), result("C", name="read"))
    agent.chat()
    found = [(one.arguments, one.result) for one in tool_calls_of(agent.run())]
    assert found == [({"path": "a"}, "A"), ({"at": "b"}, "B"), ({"path": "c"}, "C")]


@pytest.mark.parametrize(
    "reported",
    [
        {a.GEN_AI_TOOL_NAME: "search", a.GEN_AI_TOOL_CALL_ID: "c1"},
        {a.GEN_AI_TOOL_NAME: "search"},
        {a.GEN_AI_TOOL_NAME: "shop__search", a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"q": "tea"}'},
    ],
)
def test_a_span_that_reports_the_call_wins(reported: dict[str, str]):
    agent = Agent()
    agent.chat(call("search", "c1", q="tea"), call("look", "c2", at="door"))
    agent.span("execute_tool", {a.GEN_AI_OPERATION_NAME: "execute_tool", **reported})
    agent.tool(result("green", "c1"), result("shut", "c2"))
    agent.chat()
    run = agent.run()
    one, other = tool_calls_of(run)
    assert one.span is run.steps[1].span
    assert (one.is_derived, other.is_derived) == (False, True)
    assert one.to_json()["span_id"] == "0000000000000002"


def test_one_span_reports_one_call():
    agent = Agent()
    agent.chat(call("search", "c1", q="tea"), call("search", "c2", q="tea"))
    agent.span("tool", {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "search"})
    agent.tool(result("green", "c1"), result("black", "c2"))
    agent.chat()
    assert [one.is_derived for one in tool_calls_of(agent.run())] == [False, True]


def test_spans_of_an_id_that_is_used_again_report_the_calls_in_their_order():
    agent = Agent()
    reported = {a.GEN_AI_TOOL_NAME: "search", a.GEN_AI_TOOL_CALL_ID: "call_0"}
    for number in range(2):
        agent.chat(call("search", "call_0", q=str(number)))
        agent.span("tool", {a.GEN_AI_OPERATION_NAME: "execute_tool", **reported})
        agent.tool(result(f"r{number}", "call_0"))
    agent.chat()
    spans = [one.span.span_id for one in tool_calls_of(agent.run()) if one.span is not None]
    assert spans == ["0000000000000002", "0000000000000004"]


def test_a_span_outside_the_time_of_the_call_reports_another():
    agent = Agent()
    agent.span("tool", {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "search"})
    agent.chat(call("search", "c1", q="tea"))
    agent.tool(result("green", "c1"))
    agent.chat()
    agent.span("tool", {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "search"})
    assert [one.is_derived for one in tool_calls_of(agent.run())] == [True]


def test_the_same_call_after_a_failure_is_the_next_attempt():
    agent = Agent()
    for number, answer in enumerate(["Error: busy", '{"error": "busy"}', "green", "green"]):
        agent.chat(call("search", f"c{number}", q="tea"))
        agent.tool(result(answer, f"c{number}"))
    agent.chat()
    found = [(one.attempt, one.error) for one in tool_calls_of(agent.run())]
    assert found == [(1, "Error: busy"), (2, "busy"), (3, ""), (1, "")]


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (result("no such order", "c", is_error=True), "no such order"),
        (result([{"type": "text", "text": "gone"}], "c", status="error"), "gone"),
        (result({"isError": True, "message": "gone"}, "c"), "gone"),
        (
            result("Traceback (most recent call last):\n  x", "c"),
            "Traceback (most recent call last):\n  x",
        ),
        (
            result("An error occurred while running the tool. Please try again.", "c"),
            "An error occurred",
        ),
        (result("ValueError: no", "c"), "ValueError: no"),
        (result('{"error": null, "rows": 3}', "c"), ""),
        (result("2 errors in the log", "c"), ""),
        (result("terror", "c"), ""),
        (result(None, "c"), ""),
    ],
)
def test_a_result_says_whether_the_tool_failed(part: dict[str, Any], error: str):
    agent = Agent()
    agent.chat(call("search", "c"))
    agent.tool(part)
    agent.chat()
    [found] = tool_calls_of(agent.run())
    assert found.error.startswith(error) if error else found.error == ""


def test_a_call_without_a_result_is_shown_where_the_run_did_not_succeed():
    agent = Agent()
    agent.chat(call("answer", "c1", text="not meant for a tool"))
    assert tool_calls_of(agent.run("success")) == []
    [found] = tool_calls_of(agent.run("failure"))
    assert (found.number, found.ended_ns, found.duration_ns) == ("1.1", None, None)


@pytest.mark.parametrize(
    "output", ['[{"role": "assistant", "parts": [{"type": "tool_call"}]}]', "[[[", "7", '"tool"']
)
def test_messages_of_a_sender_may_be_anything(output: str):
    agent = Agent()
    agent.chat(call("search", "c1"))
    agent.spans[-1].attributes[-1].value.string_value = output
    agent.chat()
    assert all(isinstance(one.name, str) for one in tool_calls_of(agent.run("failure")))
