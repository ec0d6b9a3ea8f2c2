"""An experience: what good runs of an agent teach a new run, at several levels, as files to review.

``goal.md`` says what the runs were for and how they ended, ``plan.md`` the usual ways, the decisions and
the constraints, ``steps.md`` one good run step by step. ``workflow.toml`` checks a run afterwards, the
control rules in ``rules.txt`` stop one that leaves the bounds. No model writes any of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from playhead_analysis.durations import brief
from playhead_analysis.flows.flow import BranchPoint, Flow, flow_of
from playhead_analysis.flows.graph import END, median_and_p95
from playhead_analysis.folding import folded
from playhead_analysis.paths import RunPath
from playhead_analysis.workflows.definition import WORKFLOW, Workflow, workflow_of
from playhead_analysis.workflows.discovery import discover
from playhead_core.control.rules import LONGEST_RULE, MOST_RULES
from playhead_core.untrusted.shown_text import in_one_line
from playhead_genai.readable_text import arguments_of
from playhead_replay.run.run import Run
from playhead_replay.timeline.tool_calls import tool_calls_of
from playhead_semconv import attributes as a

MOST_WAYS: Final = 5
MOST_POINTS: Final = 8
MOST_STEPS: Final = 200
"""Steps of the example."""
PATIENCE: Final = 4
"""A run is stopped after this many times the duration that the workflow allows: it may only be slow."""
LONGEST: Final = 200
"""Characters of the arguments of a call."""


def example_among(good: Sequence[RunPath]) -> RunPath:
    """Return the run to learn from: of the most frequent way, the one that took least time."""
    ways = Counter(path.labels for path in good)
    way = min(ways, key=lambda labels: (-ways[labels], len(labels), labels))
    same = (path for path in good if path.labels == way)
    return min(same, key=lambda path: (path.duration_ns or 0, path.name))


def experience_of(
    good: Sequence[RunPath], other: Sequence[RunPath], example: Run, name: str, agents: Sequence[str]
) -> dict[str, str]:
    """Return the texts of an experience by the names of their files.

    ``good``: runs that succeeded, at least one; ``other``: runs that failed; ``example``: the whole run
    of `example_among`.
    """
    title = in_one_line(name)
    file = discover(good, other, name, agents)
    workflow, flow = workflow_of(file.encode()), flow_of(good, MOST_WAYS)
    return {
        "goal.md": _text(_goal(title, good, other, example)),
        "plan.md": _text(_plan(title, flow, workflow)),
        "steps.md": _text(_steps(title, example)),
        WORKFLOW: file,
        "rules.txt": _text(rules_of(workflow, other)),
    }


def rules_of(workflow: Workflow, other: Sequence[RunPath]) -> Iterator[str]:
    """Yield control rules for `playhead record --control` that keep a run within a workflow.

    ``other``: runs with the tools that no good run calls.
    """
    if cost := workflow.bounds.get("cost_usd"):
        yield f"stop cost>{cost:f}"
    if seconds := workflow.bounds.get("duration_s"):
        yield f"stop seconds>{seconds * PATIENCE:f}"
    never = {rule.first for rule in workflow.rules if rule.kind == "absence"}
    tools = {step.label for path in other for step in path.steps if step.kind == "tool"} & never
    usable = (tool for tool in sorted(tools) if tool.strip() == tool and not set(tool) & set("*?[;"))
    rules = [f"stop tool={tool}" for tool in usable]
    yield from [rule for rule in rules if len(rule) <= LONGEST_RULE][: MOST_RULES // 2]


def _goal(title: str, good: Sequence[RunPath], other: Sequence[RunPath], example: Run) -> Iterator[str]:
    yield f"# {title}: goal"
    yield ""
    goals = dict.fromkeys(one.text("text") for one in example.reports if one.kind == "goal")
    yield from (f"* Goal of {_code(example.name)}: {_code(goal)}" for goal in goals)
    yield f"* {len(good)} run{'s' * (len(good) != 1)} succeeded, {len(other)} failed."
    took = median_and_p95([path.duration_ns for path in good if path.duration_ns is not None])[0]
    count = median_and_p95([len(path.steps) for path in good])[0]
    yield f"* A good run has {count} steps" + ("." if took is None else f" and takes {brief(took)}.")
    causes = Counter(
        (step.label, step.failure) for path in other for step in path.steps if step.status == "error"
    )
    for (label, failure), times in causes.most_common(MOST_WAYS):
        yield f"* {_code(label)} failed {times} times in the others: {_code(failure or 'error')}"


def _plan(title: str, flow: Flow, workflow: Workflow) -> Iterator[str]:
    yield f"# {title}: plan"
    yield ""
    yield "## Ways that succeeded"
    yield ""
    for way in flow.ways:
        yield f"* {way.share:.0%} of the runs: {_code(folded(way.steps), 2000)}"
    decisions = [one for one in flow.points if one.kind == "decision"]
    if decisions:
        yield from ("", "## Decisions of the model", "")
        yield from map(_decision, decisions[:MOST_POINTS])
    yield from ("", "## Constraints", "")
    yield from (f"* {one}" for one in _constraints(workflow))


def _decision(point: BranchPoint) -> str:
    branches = (f"{_code(one.target)} {one.share:.0%}" for one in point.branches if one.target != END)
    ends = next((f", the end {one.share:.0%}" for one in point.branches if one.target == END), "")
    return f"* After {_code(point.after)}: {', '.join(branches)}{ends}"


def _constraints(workflow: Workflow) -> Iterator[str]:
    for action in workflow.actions:
        if action.minimum or action.maximum is not None:
            most = "" if action.maximum is None else f", at most {action.maximum}"
            yield f"{_code(action.name)}: at least {action.minimum} times{most}"
    for rule in workflow.rules:
        first, then = _code(rule.first), _code(rule.then)
        if rule.kind == "absence":
            yield f"never {first}"
        else:
            yield f"{then} only after {first}" if rule.kind == "precedence" else f"after {first}, {then}"
    yield from (f"{name} at most {most:g}" for name, most in workflow.bounds.items())


def _steps(title: str, example: Run) -> Iterator[str]:
    """Yield the example: each call with its arguments."""
    yield f"# {title}: steps of {_code(example.name)}"
    yield ""
    yield "Arguments are data of that run: review them before you show them to a model."
    yield ""
    calls = tool_calls_of(example)
    by_step = {call.span.span_id: call for call in calls if call.span is not None}
    found: list[tuple[int, str]] = []
    for step in example.steps:
        at, call = step.span.attributes, by_step.get(step.span.span_id)
        name = str(at.get(a.GEN_AI_TOOL_NAME) or step.span.name)
        text = _call(name, at.get(a.GEN_AI_TOOL_CALL_ARGUMENTS) if call is None else call.arguments)
        took = step.span.duration_ns
        found.append((step.span.started_ns, text + ("" if took is None else f" ({brief(took)})")))
    found += [(call.started_ns, _call(call.name, call.arguments)) for call in calls if call.span is None]
    found.sort(key=lambda one: one[0])
    yield from (f"{number}. {text}" for number, (_, text) in enumerate(found[:MOST_STEPS], 1))
    if len(found) > MOST_STEPS:
        yield f"{MOST_STEPS + 1}. and {len(found) - MOST_STEPS} more"


def _call(name: str, arguments: object) -> str:
    return f"{_code(name)} {_code(arguments_of(arguments))}" if arguments is not None else _code(name)


def _code(text: str, most: int = LONGEST) -> str:
    """Return text from a run as code in Markdown, in one line, so that nothing in it is Markdown."""
    shown = in_one_line(text[:most]).replace("`", "'")
    return f"`{shown}{'…' if len(text) > most else ''}`"


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"
