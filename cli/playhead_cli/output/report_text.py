"""Reports of a program about itself in lines: decisions, signals, failures, phases, messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.styles import ERROR, FAINT, TITLE
from playhead_cli.output.words import FOLD, count, one_line, seconds
from playhead_replay.tasks import tasks_of
from playhead_replay.transitions import transitions_of

if TYPE_CHECKING:
    from playhead_core.reports import ProgramReport
    from playhead_replay import Run
    from playhead_replay.decisions import Decision

MOST = 8
"""Reports of a step that are shown in the tree if not all are wanted."""
MOST_TASKS = 50
"""Tasks that are listed at most."""
DEEPEST_TASK = 20
"""Deeper tasks are not indented further."""
MOST_STATES = 8
"""States that are shown."""
LONGEST = 120
"""Most characters of a text."""


def report_lines(
    reports: Sequence[ProgramReport], indent: str, everything: bool = False
) -> Iterator[Text]:
    """Yield a line for each report, and a line for those that are left out."""
    for one in reports if everything else reports[:MOST]:
        yield Text(indent).append_text(_line(one))
    if not everything and len(reports) > MOST:
        left = count(len(reports) - MOST, "more report")
        yield Text(f"{indent}{FOLD} {left} (--all)", FAINT)


def step_reports(reports: Sequence[ProgramReport]) -> Iterator[Text]:
    """Yield the reports of a step; of decisions with their options and the rejected ones."""
    yield Text("Reports", TITLE)
    for one in reports:
        yield Text("  ").append_text(_line(one))
        rejected = dict(one.rejected)
        for option in dict.fromkeys([*one.texts("options"), *rejected]):
            chosen = option == one.text("chosen")
            line = Text(
                f"    {'▸' if chosen else ' '} {one_line(option, LONGEST)}", "" if chosen else FAINT
            )
            if option in rejected:
                reason = one_line(rejected[option], LONGEST)
                line.append(f"  rejected: {reason}" if reason else "  rejected", FAINT)
            yield line


def decision_lines(decisions: Sequence[Decision]) -> Iterator[Text]:
    """Yield derived decisions, each with its thought, and its outcome."""
    yield Text("Decisions (derived)", TITLE)
    for one in decisions:
        line = Text(f"  {one_line(one.chosen, LONGEST)}")
        line.append(f" of {', '.join(one_line(option, 40) for option in one.options)}", FAINT)
        line.append("" if one.confidence is None else f"  confidence {one.confidence:g}", FAINT)
        yield line
        if one.thought:
            yield Text(f"    thought: {one_line(one.thought, LONGEST)}", FAINT)
        if one.outcome:
            yield Text(f"    outcome: {one_line(one.outcome, LONGEST)}", ERROR if one.failed else FAINT)
        if one.recovered_by:
            yield Text(f"    recovered by {one.recovered_by}", FAINT)


def state_line(run: Run, everything: bool = False) -> Iterator[Text]:
    """Yield the time in each state that a run passes; of derived states only if all is wanted."""
    if not everything and all(one.kind != "phase" for one in run.reports):
        return
    transitions = transitions_of(run)
    spent: dict[str, int] = {}
    for one in transitions:
        if one.state:
            spent[one.state] = spent.get(one.state, 0) + (one.lasted_ns or 0)
    parts = [f"{one_line(name, 40)} {seconds(ns)}" for name, ns in list(spent.items())[:MOST_STATES]]
    parts += ["…"] if len(spent) > MOST_STATES else []
    if len(spent) > 1:
        derived = "  derived" if transitions[0].derived else ""
        yield Text(f"  states: {', '.join(parts)}{derived}", FAINT)


def task_lines(run: Run) -> Iterator[Text]:
    """Yield the task graph of a run as a tree, a task in a line, with its last status."""
    tasks = tasks_of(run.reports)
    if tasks:
        yield Text("  tasks:", FAINT)
    for one in tasks[:MOST_TASKS]:
        indent = "  " * min(one.depth, DEEPEST_TASK)
        line = Text(f"    {indent}{one_line(one.id, 40)} {one_line(one.name, 80)}".rstrip(), FAINT)
        if one.status:
            line.append(f"  {one_line(one.status, 40)}", ERROR if one.status == "failed" else FAINT)
        if one.ended_ns is not None and one.ended_ns > one.began_ns:
            line.append(f" after {seconds(one.ended_ns - one.began_ns)}", FAINT)
        yield line
    if len(tasks) > MOST_TASKS:
        yield Text(f"    {len(tasks) - MOST_TASKS} more (--json)", FAINT)


def _line(report: ProgramReport) -> Text:
    """Return a report in one line."""
    kind = report.kind
    line = Text(f"{kind} ", ERROR if kind == "failure" else FAINT)
    line.append(one_line(_gist(report), LONGEST))
    notes = [one_line(report.text(name), LONGEST) for name in ("reason", "method")]
    if isinstance(confidence := report.fields.get("confidence"), float):
        notes.append(f"confidence {confidence:g}")
    if isinstance(weight := report.fields.get("weight"), float):
        notes.append(f"weight {weight:g}")
    if rules := report.texts("rules"):
        notes.append(f"rules: {one_line(', '.join(rules), LONGEST)}")
    told = ", ".join(filter(None, notes))
    return line.append(f"  {told}", FAINT) if told else line


def _gist(report: ProgramReport) -> str:
    """Return what a report says, without its notes."""
    text = report.text
    if report.kind == "decision":
        asked = text("question") or text("type")
        options = len(report.texts("options"))
        of = f" of {options}" if options else ""
        return f"{asked} → {text('chosen')}{of}" if asked else f"{text('chosen')}{of}"
    if report.kind == "signal":
        return " ".join(filter(None, (text("type"), text("code"), text("value"))))
    if report.kind == "failure":
        where = f"at {text('step')}" if text("step") else ""
        return " ".join(filter(None, (text("type"), text("code"), where, text("message"))))
    if report.kind == "phase":
        kind = "" if text("type") in ("", "normal") else f" ({text('type')})"
        return f"{text('previous') or '(none)'} → {text('name') or '(none)'}{kind}"
    if report.kind == "message":
        by = f" by {text('channel')}" if text("channel") else ""
        return f"{text('kind')} to {text('to')}{by}: {text('content')}"
    if report.kind == "task":
        parts = [text("id"), text("name"), text("status")]
        parts += [f"in {text('parent')}"] if text("parent") else []
        return " ".join(filter(None, [*parts, *(f"after {one}" for one in report.texts("depends_on"))]))
    first = text({"goal": "text", "result": "value"}.get(report.kind, "type"))
    rest = [text(name) for name in ("type", "run", "id") if text(name) != first]
    return " ".join(filter(None, (first, *rest)))
