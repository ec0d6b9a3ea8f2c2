"""States of a run and its session: reported phases, nodes of frameworks, else derived ones."""

from typing import Any

from support.tapes.handmade import HandMade

from playhead_replay import Run
from playhead_replay.transitions import Transition, session_of, transitions_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

MODEL = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "gpt-4o"}
TOOL = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "search"}


def run_of(made: HandMade) -> Run:
    return Run.of_tapes([made.tape()], [span.otlp for span in made.spans])


def span(made: HandMade, name: str, error: str = "", **at: Any) -> None:
    made.finish(made.begin(name, **at), error=error)


def passed(run: Run) -> list[tuple[str, str, str]]:
    return [(one.previous, one.state, one.type) for one in transitions_of(run)]


def adds_up(run: Run, transitions: list[Transition]) -> bool:
    lasted = [one.lasted_ns or 0 for one in transitions]
    return transitions[0].time_ns + sum(lasted) == run.ended_ns


def test_states_are_derived_from_steps():
    made = HandMade().start()
    span(made, "chat gpt-4o", **MODEL)
    span(made, "chat gpt-4o", **MODEL)
    span(made, "execute_tool search", error="timed out", **TOOL)
    span(made, "chat gpt-4o", **MODEL)
    run = run_of(made.exit())
    transitions = transitions_of(run)
    assert passed(run) == [
        ("", "thinking", "normal"),
        ("thinking", "tool", "normal"),
        ("tool", "thinking", "error"),
    ]
    assert [one.step for one in transitions] == [1, 3, 4] and "timed out" in transitions[2].reason
    assert all(one.derived and one.source == "steps" for one in transitions)
    assert adds_up(run, transitions)
    session = session_of(run, transitions)
    assert (session.status, session.status_derived, session.goal) == ("completed", True, "")


def test_nodes_of_a_framework_come_before_steps():
    made = HandMade().start()
    node = {a.PLAYHEAD_FRAMEWORK_NAME: "langgraph"}
    span(made, "plan", **node, **{a.PLAYHEAD_STEP_NAME: "plan"})
    span(made, "act", error="boom", **node, **{a.PLAYHEAD_STEP_NAME: "act"})
    span(made, "act", **node, **{a.PLAYHEAD_STEP_NAME: "act"})
    assert passed(run_of(made.exit())) == [
        ("", "plan", "normal"),
        ("plan", "act", "normal"),
        ("act", "act", "retry"),
    ]


def test_reported_phases_come_before_all():
    made = HandMade().start()
    made.fact(e.PLAYHEAD_GOAL, attributes={a.PLAYHEAD_GOAL_TEXT: "refund"})
    made.fact(e.PLAYHEAD_TASK, attributes={a.PLAYHEAD_TASK_ID: "t1"})
    made.fact(e.PLAYHEAD_PHASE, attributes={a.PLAYHEAD_PHASE_NAME: "planning"})
    span(made, "chat gpt-4o", **MODEL)
    waiting = {a.PLAYHEAD_PHASE_NAME: "waiting", a.PLAYHEAD_PHASE_PREVIOUS: "planning"}
    made.fact(e.PLAYHEAD_PHASE, attributes=waiting)
    run = run_of(made)
    assert passed(run) == [("", "planning", "normal"), ("planning", "waiting", "normal")]
    run.status = "running"
    session = session_of(run, transitions_of(run))
    assert (session.status, session.status_derived) == ("waiting", False)
    assert (session.goal, [one.id for one in session.tasks]) == ("refund", ["t1"])
