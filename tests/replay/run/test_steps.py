"""What counts as a step where spans enclose each other."""

import sys
from typing import Any

from support.tapes.handmade import HandMade

from playhead_cli.output.step_rows import rows_of
from playhead_receiver.storage.runs.summary_fold import counted_steps, without_rings
from playhead_receiver.storage.values.span_labels import Label, SpanRow
from playhead_replay.run.run import Run
from playhead_replay.run.spans import KIND_CLIENT, KIND_SERVER, Span, grow
from playhead_replay.run.steps import number_steps
from playhead_semconv import attributes as a

AGENT: dict[str, Any] = {a.GEN_AI_OPERATION_NAME: "invoke_agent"}
CHAT: dict[str, Any] = {a.GEN_AI_OPERATION_NAME: "chat"}


def span(id: str, *children: Span, **at: str) -> Span:
    made = Span("1", id, "", id, KIND_CLIENT, 1, 2, dict(at))
    made.children = list(children)
    return made


def call(id: str, *children: Span, operation: str = "chat") -> Span:
    return span(id, *children, **{a.GEN_AI_OPERATION_NAME: operation})


def request(id: str) -> Span:
    return span(id, **{a.HTTP_REQUEST_METHOD: "POST"})


def steps(*roots: Span) -> list[tuple[str, list[str]]]:
    return [
        (step.span.name, [one.name for one in step.attempts])
        for step in sorted(number_steps(roots), key=lambda step: step.span.span_id)
    ]


def test_a_framework_and_the_client_below_it_tell_of_one_call():
    assert steps(call("1", call("2", request("3"), request("4")))) == [("2", ["3", "4"])]
    between = span("1b", call("2", request("3")))
    assert steps(call("1", between, operation="generate_content")) == [("2", ["3"])]


def test_a_call_that_encloses_several_is_none_of_its_own():
    assert steps(call("1", call("2"), call("3"))) == [("2", []), ("3", [])]


def test_a_tool_that_asks_a_model_is_a_step_beside_it():
    tool = call("2", call("3"), operation="execute_tool")
    assert steps(call("1", tool)) == [("2", []), ("3", [])]
    assert steps(tool) == [("2", []), ("3", [])]


def test_a_request_of_a_service_is_no_attempt_of_its_caller():
    def served(*children: Span) -> Span:
        made = span("s", *children, **{a.HTTP_REQUEST_METHOD: "POST"})
        made.kind = KIND_SERVER
        return made

    def asks(*children: Span) -> Span:
        return span("2", *children, **{a.HTTP_REQUEST_METHOD: "POST"})

    assert steps(asks(served(request("3")))) == [("2", ["2"]), ("3", ["3"])]
    tool = call("1", asks(served(request("3"))), operation="execute_tool")
    assert steps(tool) == [("1", ["2"]), ("3", ["3"])]
    assert steps(call("1", asks(served(request("3"))))) == [("1", ["2", "3"])]  # a gateway of models


def test_a_store_counts_the_same():
    label = Label(step=True, model="m-1")
    rows = [
        SpanRow(b"1", b"", 1, 2, label=label),
        SpanRow(b"2", b"1", 1, 2),
        SpanRow(b"3", b"2", 1, 2, label=label),
        SpanRow(b"4", b"3", 1, 2, label=Label(step=True, tool="search")),
    ]
    assert counted_steps(rows) == {b"3", b"4"}


def test_a_store_counts_the_same_where_calls_are_in_a_ring():
    parents = {"1": "3", "2": "1", "3": "2", "4": "4"}
    spans = [
        Span("1", id, above, id, KIND_CLIENT, int(id), 9, {a.GEN_AI_OPERATION_NAME: "chat"})
        for id, above in parents.items()
    ]
    label = Label(step=True, model="m-1")
    rows = [
        SpanRow(id.encode(), above.encode(), int(id), 9, label=label) for id, above in parents.items()
    ]
    counted = {step.span.span_id for step in number_steps(grow(spans, []))}
    assert counted == {"3", "4"}
    assert counted_steps(without_rings(rows)) == {id.encode() for id in counted}


def test_spans_that_nest_deeper_than_python_recurses():
    made = HandMade().start()
    spans = [made.begin("invoke_agent a", **AGENT)]
    for _ in range(2 * sys.getrecursionlimit()):
        spans.append(made.begin("invoke_agent a", parent=spans[-1], **AGENT))
    spans.append(made.begin("chat gpt-4o", kind=KIND_CLIENT, parent=spans[-1], **CHAT))
    for one in reversed(spans):
        made.finish(one)
    run = Run.of_tapes([made.exit().tape()], [one.otlp for one in made.spans])
    assert [step.span.name for step in run.steps] == ["chat gpt-4o"]
    assert len(rows_of(run)) == len(spans)
