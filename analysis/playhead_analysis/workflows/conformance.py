"""How far a run did what a workflow says: completeness, what is missing, what is not expected."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final, Literal, TypeAlias

from playhead_analysis.paths import PathStep, RunPath, path_of
from playhead_analysis.workflows.alignment import Aligner, Move, MoveKind
from playhead_analysis.workflows.definition import Workflow, read_workflow
from playhead_core.errors import UsageError
from playhead_replay import Run
from playhead_replay.goldens.observed import ObservedRun
from playhead_replay.timeline.tool_calls import tool_calls_of

SCHEMA_VERSION: Final = 1
LOOP: Final = 5
"""The same step more often than this in a row is an endless loop, unless ``repeats`` says otherwise."""
SECOND: Final = 10**9
MOST_WORK: Final = 200_000_000
"""Largest number of matches of a run, times actions, that is aligned: some seconds."""

Conforms: TypeAlias = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class AlignedStep:
    """A step of a run beside a step of the workflow."""

    kind: Literal["step", "unexpected", "missing"]
    place: str
    """Step of the run, as `playhead show` prints it; for a missing one, the step before which it is
    missing; empty at the end."""
    label: str
    """Of the step of the run; empty for a missing one."""
    action: str
    """Name in the workflow; empty if the step matches no action."""


@dataclass(frozen=True, slots=True)
class ExceededBound:
    """A bound that a run does not keep."""

    name: str
    allowed: float
    actual: float


@dataclass(frozen=True, slots=True)
class Conformance:
    """How far a run did what a workflow says."""

    run: str
    conforms: Conforms
    """`unknown`: the run has not ended, or what a bound needs is not known."""
    completeness: float
    """Share of what the workflow requires that the run did, from 0 to 1."""
    missing: list[str]
    """States, actions and transitions that are required and missing."""
    unexpected: list[str]
    """Steps that are not expected, as `3 delete_all`."""
    broken_rules: list[str]
    exceeded: list[ExceededBound]
    unknown: list[str]
    """Bounds that cannot be checked, and why."""
    is_success: bool
    """Whether the conditions of success hold."""
    anomalies: list[str]
    """`infinite_loop`, `missing_action`, `timeout`."""
    cost: int
    """Of the alignment: steps that are missing or unexpected."""
    alignment: list[AlignedStep]


class Conformer:
    """Compares runs with a workflow. Runs with the same steps are aligned once."""

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self._matches: dict[tuple[str, str], tuple[str, ...] | None] = {}
        edges = [(one.source, one.target) for one in workflow.transitions]
        names = [action.name for action in workflow.actions]
        self._aligner = Aligner(names, edges, workflow.start, workflow.end) if edges else None
        self._aligned: dict[tuple[tuple[str, ...], ...], tuple[int, list[Move]]] = {}

    def conform(self, path: RunPath) -> Conformance:
        """Return how far a run did what the workflow says. `UsageError` if that takes too long."""
        workflow = self._workflow
        steps = [step for step in path.steps if self._match(step) is not None]
        matches = tuple(self._match(step) or () for step in steps)
        if sum(map(len, matches)) * len(workflow.actions) > MOST_WORK:
            hint = "let fewer patterns match the same step"
            raise UsageError(f"{path.name} has too many steps for {workflow.name}", hint=hint)
        cost, moves = self._align(matches)
        counts = Counter(move.action for move in moves if move.kind != "missing")
        alignment = [self._shown(move, steps) for move in moves]
        missing, done, required = self._required(path, counts, moves)
        unexpected = [f"{one.place} {one.label}" for one in alignment if one.kind == "unexpected"]
        if self._aligner is not None:  # a walk may take an action any number of times
            unexpected += [
                f"{action.name} ×{counts[action.name]}, at most {action.maximum}"
                for action in workflow.actions
                if action.maximum is not None and counts[action.name] > action.maximum
            ]
        broken = self._broken_rules(matches)
        exceeded, unknown = self._bounds(path, steps)
        is_success = self._is_success(path, matches)
        wrong = bool(missing or unexpected or broken or exceeded or not is_success)
        if path.status == "running":
            unknown.append("the run has not ended")
        if path.is_cut:
            unknown.append("the run has more steps than were read")
        anomalies = {
            "infinite_loop": any(one.name == "repeats" for one in exceeded)
            or ("repeats" not in workflow.bounds and _repeats(steps) > LOOP),
            "missing_action": any(one.kind == "missing" for one in alignment)
            or any(counts[one.name] < one.minimum for one in workflow.actions),
            "timeout": any(one.name == "duration_s" for one in exceeded),
        }
        return Conformance(
            path.name,
            # A pending run may still do a missing step, but an exceeded bound stays exceeded.
            ("unknown" if unknown and not (broken or exceeded) else "no") if wrong or unknown else "yes",
            round(done / required, 4) if required else 1.0,
            missing,
            unexpected,
            broken,
            exceeded,
            unknown,
            is_success,
            [name for name, is_so in anomalies.items() if is_so],
            cost,
            alignment,
        )

    def _match(self, step: PathStep) -> tuple[str, ...] | None:
        """Return the actions that a step matches, in order of the file; None if it does not count."""
        key = step.label, step.kind
        if key not in self._matches:
            workflow = self._workflow
            names = tuple(action.name for action in workflow.actions if action.fits(step))
            ignored = not names and (workflow.allow_other or workflow.ignore.fits(step))
            self._matches[key] = None if ignored else names
        return self._matches[key]

    def _align(self, matches: tuple[tuple[str, ...], ...]) -> tuple[int, list[Move]]:
        if matches not in self._aligned:
            align = self._by_counts if self._aligner is None else self._aligner.align
            self._aligned[matches] = align(matches)
        return self._aligned[matches]

    def _by_counts(self, matches: Sequence[Sequence[str]]) -> tuple[int, list[Move]]:
        """Align with a workflow without transitions: any order, each action within its bounds."""
        most = {action.name: action.maximum for action in self._workflow.actions}
        counts = Counter[str]()
        moves: list[Move] = []
        for position, names in enumerate(matches):
            allowed = (one for one in names if counts[one] < (most[one] or 0) or most[one] is None)
            name = next(allowed, "")
            counts[name] += 1
            kind: MoveKind = "step" if name else "unexpected"
            moves.append(Move(kind, name or next(iter(names), ""), position))
        for action in self._workflow.actions:
            lacking = action.minimum - counts[action.name]
            moves += [Move("missing", action.name, len(matches))] * max(lacking, 0)
        return sum(move.kind != "step" for move in moves), moves

    def _shown(self, move: Move, steps: Sequence[PathStep]) -> AlignedStep:
        step = steps[move.position] if move.position < len(steps) else None
        label = "" if step is None or move.kind == "missing" else step.label
        return AlignedStep(move.kind, "" if step is None else step.place, label, move.action)

    def _required(
        self,
        path: RunPath,
        counts: Counter[str],
        moves: Sequence[Move],
    ) -> tuple[list[str], int, int]:
        """Return what is missing, how many required things were done, and how many are required."""
        workflow = self._workflow
        missing: list[str] = []
        done = required = 0
        took: defaultdict[str, int] = defaultdict(int)
        for step in path.steps:
            took[step.phase] += step.duration_ns or 0
        took.update(path.state_times_ns)
        for state in workflow.states:
            if not state.required:
                continue
            required += 1
            if state.name not in path.states:
                missing.append(f"state {state.name}")
            elif took[state.name] < state.minimum_s * SECOND:
                missing.append(f"state {state.name} for {state.minimum_s:g} s")
            else:
                done += 1
        lacking = Counter(move.action for move in moves if move.kind == "missing")
        for action in workflow.actions:
            below = max(action.minimum - counts[action.name], 0)
            count = max(below, lacking[action.name])
            required += action.minimum + count - below
            done += action.minimum - below
            missing += [action.name + (f" ×{count}" if count > 1 else "")] if count > 0 else []
        walk = [move for move in moves if move.kind == "step"]
        taken = {(one.action, other.action) for one, other in pairwise(walk)}
        for edge in workflow.transitions:
            if edge.required:
                required += 1
                done += (edge.source, edge.target) in taken
                if (edge.source, edge.target) not in taken:
                    missing.append(f"{edge.source} → {edge.target}")
        return missing, done, required

    def _broken_rules(self, matches: Sequence[Sequence[str]]) -> list[str]:
        broken: list[str] = []
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for position, names in enumerate(matches):
            for name in names:
                first.setdefault(name, position)
                last[name] = position
        for rule in self._workflow.rules:
            if rule.kind == "absence" and rule.first in first:
                broken.append(f"never {rule.first}")
            elif rule.kind == "precedence" and rule.then in first:
                if first.get(rule.first, len(matches)) >= first[rule.then]:
                    broken.append(f"{rule.then} only after {rule.first}")
            elif rule.kind == "response" and rule.first in last:
                if last.get(rule.then, -1) <= last[rule.first]:
                    broken.append(f"after {rule.first}, {rule.then}")
        return broken

    def _bounds(self, path: RunPath, steps: Sequence[PathStep]) -> tuple[list[ExceededBound], list[str]]:
        actual: dict[str, float | None] = {
            "duration_s": None if path.duration_ns is None else path.duration_ns / SECOND,
            "cost_usd": path.cost_usd,
            "model_calls": sum(step.kind == "model" for step in path.steps),
            "steps": len(path.steps),
            "tokens": path.input_tokens + path.output_tokens,
            "failures": sum(step.status == "error" for step in path.steps),
            "repeats": _repeats(steps),
        }
        exceeded: list[ExceededBound] = []
        unknown: list[str] = []
        for name, allowed in self._workflow.bounds.items():
            value = actual[name]
            if value is None:
                unknown.append(f"{name} is not known")
            elif value > allowed:
                exceeded.append(ExceededBound(name, allowed, round(value, 6)))
        return exceeded, unknown

    def _is_success(self, path: RunPath, matches: Sequence[Sequence[str]]) -> bool:
        success = self._workflow.success
        last = matches[-1] if matches else ()
        return (not success.status or path.status in success.status) and (
            not success.last or any(name in success.last for name in last)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """How far runs did what a workflow says."""

    schema_version: int = SCHEMA_VERSION
    workflow: str
    conforms: Conforms
    """`no` if one run does not, else `unknown` if it cannot be said of one, else `yes`."""
    runs: int
    conforming: int
    completeness: float
    """Mean over the runs."""
    missing: dict[str, int]
    """Number of runs that lack an element, by its name; the most frequent first."""
    unexpected: dict[str, int]
    """Steps that are not expected, by label."""
    results: list[Conformance]


def conformance_of(workflow: Workflow, paths: Iterable[RunPath]) -> ConformanceReport:
    """Return how far runs did what a workflow says. Runs of other agents are left out. `UsageError`."""
    conformer = Conformer(workflow)
    results = [
        conformer.conform(path) for path in paths if not workflow.agents or path.agent in workflow.agents
    ]
    verdicts = {one.conforms for one in results}
    missing = Counter(what for one in results for what in one.missing)
    unexpected = Counter(
        what
        for one in results
        for what in {step.label for step in one.alignment if step.kind == "unexpected"}
    )
    return ConformanceReport(
        workflow=workflow.name,
        conforms="no"
        if "no" in verdicts
        else "unknown"
        if "unknown" in verdicts or not results
        else "yes",
        runs=len(results),
        conforming=sum(one.conforms == "yes" for one in results),
        completeness=round(sum(one.completeness for one in results) / len(results), 4)
        if results
        else 0.0,
        missing=dict(missing.most_common()),
        unexpected=dict(sorted(unexpected.items(), key=lambda one: (-one[1], one[0]))),
        results=results,
    )


def _repeats(steps: Sequence[PathStep]) -> int:
    """Return how often the same step occurs in a row at most."""
    return max((sum(1 for _ in some) for _, some in groupby(step.label for step in steps)), default=0)


def assert_workflow(run: Run | ObservedRun | RunPath, workflow: Workflow | str | Path) -> None:
    """Fail unless a run did what a workflow says: a replayed golden, a run, or a path.

    ``workflow``: a file, the name of a shipped one, or a `Workflow`.
    """
    __tracebackhide__ = True
    wanted = workflow if isinstance(workflow, Workflow) else read_workflow(workflow)
    if isinstance(run, ObservedRun):
        run = run.run
    if not isinstance(run, RunPath):
        run = path_of(run, tool_calls_of(run), with_states=bool(wanted.states))
    found = Conformer(wanted).conform(run)
    if found.conforms != "yes":
        raise AssertionError(
            "\n".join([f"{run.name} does not conform to {wanted.name}", *reasons_of(found)])
        )


def reasons_of(found: Conformance) -> list[str]:
    """Return why a run does not conform, a line each."""
    lines = [f"missing: {what}" for what in found.missing]
    lines += [f"not expected: {what}" for what in found.unexpected]
    lines += [f"rule: {what}" for what in found.broken_rules]
    lines += [f"{one.name}: {one.actual:g}, at most {one.allowed:g}" for one in found.exceeded]
    lines += [] if found.is_success else ["the conditions of success do not hold"]
    return [*lines, *(f"unknown: {what}" for what in found.unknown)]
