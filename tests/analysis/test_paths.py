"""The path of a run: its steps, whether read from spans alone, with its tape, or from a store."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from support.analysis.made_paths import SECOND
from support.answers.spoken import CALL, QUESTION, RESULT, answer, request, talk
from support.tapes.handmade import START_NS, HandMade

from playhead_analysis import RunPath, path_of, read_path
from playhead_analysis.workflows.conformance import Conformer
from playhead_analysis.workflows.definition import workflow_of
from playhead_receiver.storage import Batch, open_store
from playhead_replay import Run
from playhead_replay.timeline.tool_calls import tool_calls_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

HOSTILE = "a\x1b]0;title\x07\nb"


def made() -> HandMade:
    """A model that calls a plain function, then a failing tool of an agent, then a request."""
    made = HandMade().start()
    talk(made, request(QUESTION), answer(**CALL))
    made.wait(2)
    talk(made, request(QUESTION, CALL, RESULT), answer(content="Done."))
    agent = made.begin(
        "invoke_agent", **{a.GEN_AI_OPERATION_NAME: "invoke_agent", a.GEN_AI_AGENT_NAME: HOSTILE}
    )
    tool = made.begin(
        "execute_tool",
        parent=agent,
        **{a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "refund"},
    )
    made.finish(tool, error="TimeoutError: no answer")
    get = made.begin("GET", parent=agent, kind=3, **{a.HTTP_REQUEST_METHOD: "GET"})
    made.finish(get, **{a.URL_FULL: "http://shop/orders/81/items?q=1"})
    made.finish(agent)
    return made.exit()


def shape(path: RunPath) -> list[tuple[str, str, str, str, str]]:
    return [(step.place, step.kind, step.label, step.failure, step.phase) for step in path.steps]


def test_a_path_has_calls_without_spans_phases_and_failures(tmp_path: Path):
    tape = made()
    run = Run.of_tapes([tape.tape()], [span.otlp for span in tape.spans], "refund-1")
    path = path_of(run)
    agent = "a\\u001b]0;title\\u0007\\u000ab"
    assert shape(path) == [
        ("1", "model", "chat", "", ""),
        ("1.1", "tool", "search", "", ""),
        ("2", "model", "chat", "", ""),
        ("3", "tool", "refund", "timeout", agent),
        ("4", "request", "GET shop/orders/{}/items", "", agent),
    ]
    assert path.states == (agent,)
    assert (path.started_ns, path.status) == (START_NS, "success")
    assert path.steps[1].duration_ns == 2_000_000_000
    known = path_of(run, tool_calls_of(run))
    assert known.steps[1].arguments and not path.steps[1].arguments
    assert replace(known.steps[1], arguments="") == path.steps[1]

    with closing(open_store(tmp_path)) as store:
        store.commit(Batch(tape.spans, tape.facts))
        stored = read_path(store, run.trace_id)
        assert shape(stored) == shape(path)
        assert (stored.input_tokens, stored.duration_ns) == (path.input_tokens, path.duration_ns)


def test_each_call_of_one_tool_in_an_answer_is_a_step(tmp_path: Path):
    (once,) = CALL["tool_calls"]
    twice = CALL | {"tool_calls": [once | {"id": "c1"}, once | {"id": "c2"}]}
    results = [RESULT | {"tool_call_id": id} for id in ("c1", "c2")]
    tape = HandMade().start()
    talk(tape, request(QUESTION), answer(**twice))
    talk(tape, request(QUESTION, twice, *results), answer(content="Done."))
    tape.exit()
    run = Run.of_tapes([tape.tape()], [span.otlp for span in tape.spans], "refund-1")
    path = path_of(run)
    assert [step.place for step in path.steps] == ["1", "1.1", "1.2", "2"]
    assert shape(path) == shape(path_of(run, tool_calls_of(run)))
    with closing(open_store(tmp_path)) as store:
        store.commit(Batch(tape.spans, tape.facts))
        assert shape(read_path(store, run.trace_id)) == shape(path)
        assert store.resolve(run.trace_id).tools == ["search"]


def test_a_run_that_was_killed_has_the_step_that_it_was_in(tmp_path: Path):
    tape = HandMade().start()
    tape.chat()
    tape.begin(
        "execute_tool search", **{a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "search"}
    )
    with closing(open_store(tmp_path)) as store:
        store.commit(Batch(tape.spans, tape.facts))
        path = read_path(store, tape.trace_id.hex())
    assert [(step.label, step.status) for step in path.steps] == [("chat", "ok"), ("search", "pending")]


def test_reported_phases_and_nodes_of_frameworks_are_states_with_their_times():
    made = HandMade().start()
    for name, seconds in (("specification", 1), (HOSTILE, 2), ("specification", 4)):
        made.fact(e.PLAYHEAD_PHASE, attributes={a.PLAYHEAD_PHASE_NAME: name})
        made.wait(seconds)
    run = Run.of_tapes([made.exit().tape()], [span.otlp for span in made.spans])
    path = path_of(run, with_states=True)
    assert path.states == ("specification", "a\\u001b]0;title\\u0007\\u000ab")
    times = dict(path.state_times_ns)
    assert [round(ns / SECOND) for ns in times.values()] == [5, 2]
    assert path_of(run).state_times_ns == ()
    states = "\n".join(f'[[state]]\nname = "specification"\nminimum_s = {least}' for least in (4, 9))
    [found] = [Conformer(workflow_of(f'name = "x"\n{states}'.encode())).conform(path)]
    assert found.missing == ["state specification for 9 s"]

    nodes = HandMade().start()
    for name in ("plan", "act"):
        named = {a.PLAYHEAD_FRAMEWORK_NAME: "langgraph", a.PLAYHEAD_STEP_NAME: name}
        node = nodes.begin(name, **named)
        nodes.wait(3).finish(node)
    run = Run.of_tapes([nodes.exit().tape()], [span.otlp for span in nodes.spans])
    assert [name for name, _ in path_of(run, with_states=True).state_times_ns] == ["plan", "act"]
