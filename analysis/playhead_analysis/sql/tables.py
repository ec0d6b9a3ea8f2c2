"""The tables and views of runs: columns, and the rows of a run. SQLite and PostgreSQL have the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, LiteralString, TypeAlias, cast

from playhead_analysis.agents.communications import Communication, communications_of
from playhead_analysis.paths import PathStep, RunPath
from playhead_analysis.workflows.conformance import Conformance
from playhead_analysis.workflows.definition import Workflow
from playhead_replay.decisions import Decision, decisions_of
from playhead_replay.derived.attribution import Attribution, attribution_of
from playhead_replay.run.run import Run
from playhead_replay.transitions import AgentSession, Transition, session_of, transitions_of

Kind: TypeAlias = Literal["text", "real", "integer"]
Row: TypeAlias = tuple[str | float | int | None, ...]

_TABLES: Final = {
    "sessions": "run text, trace_id text, agent text, version text, status text, started_at real,"
    " duration_s real, cost_usd real, input_tokens integer, output_tokens integer, steps integer,"
    " agent_type text, goal text, goal_type text, trigger text, parent text, result text",
    "actions": "run text, place text, step integer, kind text, label text, name text, status text,"
    " started_at real, duration_s real, arguments text, failure text, phase text,"
    " input_tokens integer, output_tokens integer, retries integer, span_id text",
    "transitions": "run text, sequence integer, from_state text, to_state text, type text, at real,"
    " time_in_state_s real, reason text, trigger text, source text",
    "decisions": "run text, step integer, at real, type text, question text, chosen text, options text,"
    " rejected text, rules text, method text, reason text, confidence real, outcome text,"
    " failed integer, derived integer",
    "communications": "run text, sequence integer, from_agent text, to_agent text, channel text,"
    " kind text, sent_at real, answered_at real, own_s real, expects_answer integer, failed integer,"
    " failure text, step integer",
    "step_times": "run text, place text, part text, name text, agent text, time_s real, cost_usd real",
    "definitions": "workflow text, element text, name text, target text, required integer,"
    " minimum real, maximum real",
    "completeness": "run text, workflow text, conforms text, completeness real, missing text,"
    " unexpected text, broken_rules text, anomalies text",
}
_VIEWS: Final = {
    "repeats": "run text, label text, arguments text, times integer",
    "now": "run text, place text, label text, kind text, started_at real",
    "current_states": "run text, state text, since real",
    "run_times": "run text, part text, time_s real, cost_usd real",
    "failures": "run text, agent text, version text, run_status text, place text, kind text,"
    " label text, failure text, started_at real, cost_usd real",
}


def _parsed(tables: Mapping[str, str]) -> dict[str, list[tuple[str, Kind]]]:
    return {
        table: [cast("tuple[str, Kind]", tuple(column.split())) for column in columns.split(",")]
        for table, columns in tables.items()
    }


TABLES: Final = _parsed(_TABLES)
"""The columns of each table, with the kinds of their values. Times are seconds since 1970, flags 0 or
1, lists JSON."""
COLUMNS: Final = TABLES | _parsed(_VIEWS)
"""The same of tables and views."""
VIEWS: Final[dict[str, LiteralString]] = {
    "repeats": "SELECT run, label, arguments, count(*) AS times FROM actions"
    " WHERE kind IN ('tool', 'retrieval') AND arguments <> ''"
    " GROUP BY run, label, arguments HAVING count(*) > 2",
    "now": "SELECT run, place, label, kind, started_at FROM actions WHERE status = 'pending'",
    "current_states": "SELECT run, to_state AS state, at AS since FROM transitions t WHERE sequence ="
    " (SELECT max(sequence) FROM transitions o WHERE o.run = t.run)",
    "run_times": "SELECT run, part, sum(time_s) AS time_s, sum(cost_usd) AS cost_usd FROM step_times"
    " GROUP BY run, part",
    "failures": "SELECT a.run, s.agent, s.version, s.status AS run_status, a.place, a.kind, a.label,"
    " a.failure, a.started_at, s.cost_usd FROM actions a JOIN sessions s ON s.run = a.run"
    " WHERE a.status = 'error'",
}
"""Views by name. ``repeats``: equal calls of a tool, more than twice in a run. ``now``: what running
agents are doing. ``current_states``: the last state of each run. ``run_times``: what the time of each
run was for. ``failures``: steps that failed."""
DETAILED: Final = frozenset(("transitions", "decisions", "communications", "step_times"))
"""Tables whose rows need the whole run."""
DETAILED_COLUMNS: Final = frozenset(("agent_type", "goal", "goal_type", "trigger", "parent", "result"))
"""Columns of ``sessions`` that need it."""


@dataclass(frozen=True, slots=True)
class RunDetails:
    """What a path does not have of a run."""

    session: AgentSession
    transitions: Sequence[Transition] = ()
    """Phases and nodes of frameworks; empty for a run without."""
    decisions: Sequence[Decision] = ()
    communications: Sequence[Communication] = field(default_factory=list[Communication])
    attribution: Attribution | None = None


def details_of(run: Run) -> RunDetails:
    """Return what the tables have of a run, except for its path."""
    transitions = transitions_of(run)
    known = [one for one in transitions if one.source != "steps"]
    return RunDetails(
        session_of(run, transitions),
        known,
        decisions_of(run),
        communications_of(run),
        attribution_of(run),
    )


def rows_of(path: RunPath, details: RunDetails | None) -> dict[str, list[Row]]:
    """Return the rows of a run by table. Without details, tables and columns of `DETAILED` are empty."""
    session = None if details is None else details.session
    said = ("",) * 6
    if session is not None:
        said = (session.agent_type, session.goal, session.goal_type)
        said += (session.trigger, session.parent, session.result)
    rows: dict[str, list[Row]] = {
        "sessions": [
            (
                *(path.name, path.trace_id, path.agent, path.version, path.status),
                *(path.started_ns / 1e9, _seconds(path.duration_ns), path.cost_usd),
                *(path.input_tokens, path.output_tokens, len(path.steps), *said),
            )
        ],
        "actions": [_action(path.name, step) for step in path.steps],
    }
    if details is not None:
        rows["transitions"] = list(_transitions(path, details.transitions))
        rows["decisions"] = [_decision(path.name, one) for one in details.decisions]
        rows["communications"] = [
            (
                *(path.name, number, one.source, one.target, one.channel, one.kind),
                *(one.started_ns / 1e9, _seconds(one.answered_ns), one.own_ns / 1e9),
                *(int(one.expects_answer), int(one.failed), one.failure, one.step),
            )
            for number, one in enumerate(details.communications, 1)
        ]
        if details.attribution is not None:
            rows["step_times"] = list(_times(path.name, details.attribution))
    return rows


def _times(run: str, found: Attribution) -> Iterator[Row]:
    """Yield the parts of a run's time; they add up to its duration."""
    retries: dict[str, Row] = {}
    for one in found.steps:
        yield run, one.place, one.part, one.name, one.agent, one.time_ns / 1e9, one.cost_usd
        if one.retry_ns:
            retries[one.place] = (run, one.place, "retry", one.name, one.agent, one.retry_ns / 1e9, None)
    yield from retries.values()
    yield run, "", "code", "", "", found.code_ns / 1e9, None


def rows_of_workflow(workflow: Workflow) -> list[Row]:
    """Return the rows of a workflow for the table ``definitions``."""
    states = (("state", one.name, "", int(one.required), one.minimum_s, None) for one in workflow.states)
    actions = (
        ("action", one.name, "", int(one.minimum > 0), one.minimum, one.maximum)
        for one in workflow.actions
    )
    transitions = (
        ("transition", one.source, one.target, int(one.required), None, None)
        for one in workflow.transitions
    )
    rules = ((f"rule {one.kind}", one.first, one.then, 1, None, None) for one in workflow.rules)
    bounds = (("bound", name, "", 1, None, most) for name, most in workflow.bounds.items())
    return [
        (workflow.name, *one) for some in (states, actions, transitions, rules, bounds) for one in some
    ]


def row_of_conformance(found: Conformance, workflow: str) -> Row:
    """Return the row of a run for the table ``completeness``."""
    lists = (found.missing, found.unexpected, found.broken_rules, found.anomalies)
    return (found.run, workflow, found.conforms, found.completeness, *map(_json, lists))


def _action(run: str, step: PathStep) -> Row:
    return (
        *(run, step.place, step.number, step.kind, step.label, step.name, step.status),
        *(step.started_ns / 1e9, _seconds(step.duration_ns), step.arguments, step.failure, step.phase),
        *(step.input_tokens, step.output_tokens, step.retries, step.span_id),
    )


def _decision(run: str, one: Decision) -> Row:
    return (
        *(run, one.step, one.time_ns / 1e9, one.type, one.question, one.chosen, _json(one.options)),
        *(_json([list(pair) for pair in one.rejected]), _json(one.rules), one.method, one.reason),
        *(one.confidence, one.outcome, int(one.failed), int(one.derived)),
    )


def _transitions(path: RunPath, known: Sequence[Transition]) -> Iterator[Row]:
    """Yield each change of state: phases or nodes if there are any, else what the agent waits for."""
    before, since = "started", path.started_ns
    found: list[tuple[str, str, int, str, str, str]] = [
        (one.state, one.type, one.time_ns, one.reason, one.trigger, one.source) for one in known
    ] or [
        (
            _state(step),
            "error" if step.status == "error" else "retry" if step.retries else "normal",
            *(step.started_ns, "", "step", "steps"),
        )
        for step in path.steps
    ]
    if path.duration_ns is not None:
        end = path.started_ns + path.duration_ns
        found.append((path.status, "error" if path.failed else "normal", end, "", "end", "run"))
    number = 0
    for state, kind, at, reason, trigger, source in found:
        if state == before:
            continue
        number += 1
        spent = max(at - since, 0) / 1e9
        yield path.name, number, before, state, kind, at / 1e9, spent, reason, trigger, source
        before, since = state, at


def _state(step: PathStep) -> str:
    """Return what the agent waits for, in words that all runs share."""
    if step.kind == "tool":
        return f"tool {step.label}"
    return {"model": "thinking", "retrieval": "retrieving", "request": "requesting"}.get(
        step.kind, step.label
    )


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


def _json(values: Sequence[Any]) -> str:
    return json.dumps(values, ensure_ascii=False)
