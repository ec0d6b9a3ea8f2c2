"""Runs and steps as the plain objects that ``--json`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from playhead_core.otlp.log_records import level_name
from playhead_genai.messages import plain
from playhead_replay.decisions import decisions_of
from playhead_replay.derived.loops import loops_of
from playhead_replay.derived.signals import signals_of
from playhead_replay.failures.find import failures_of, status_reason
from playhead_replay.run.outputs import Outputs, unrecorded_traffic
from playhead_replay.timeline.tool_calls import tool_calls_of
from playhead_replay.transitions import session_of, transitions_of

if TYPE_CHECKING:
    from playhead_cli.json_output.shown import (
        PrintedCommand,
        PrintedExit,
        PrintedLogRecord,
        PrintedOneToolCall,
        PrintedSpan,
        PrintedStep,
        PrintedWholeRun,
        PrintedWholeStep,
    )
    from playhead_core.otlp.log_records import LogLine
    from playhead_replay import Run, Span, Step
    from playhead_replay.run.messages import Messages
    from playhead_replay.timeline.tool_calls import ToolCallStep

LAST_LINES = 5
"""Number of last lines of stderr in the object of a failed run."""


def run_object(run: Run) -> PrintedWholeRun:
    """Return a run with its tree of spans and its steps."""
    usage, cost = run.usage, run.cost
    calls = tool_calls_of(run)
    failures = failures_of(run)
    transitions = transitions_of(run)
    numbers = run.steps_of_spans() if run.scores else {}
    return {
        "schema_version": 1,
        "name": run.name,
        "trace_id": run.trace_id,
        "agent": run.agent,
        "status": cast("Any", run.status),
        "status_reason": status_reason(run, failures) or None,
        "unrecorded": unrecorded_traffic(run.tapes),
        "mode": run.mode,
        "origin": run.origin or None,
        "started_ns": run.started_ns,
        "ended_ns": run.ended_ns,
        "command": _command(run),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost_usd": cost.known_usd,
        "unpriced": list(cost.unpriced),
        "exit": _exit(run),
        "steps": [_step(step) for step in run.steps],
        "tool_calls": [call.to_json() for call in calls],
        "failures": [failure.to_json() for failure in failures],
        "reports": cast("Any", [one.to_json() for one in run.reports]),
        "decisions": [one.to_json() for one in decisions_of(run)],
        "session": session_of(run, transitions).to_json(),
        "transitions": [one.to_json() for one in transitions],
        "loops": [loop.to_json() for loop in loops_of(run)],
        "signals": [one.to_json() for one in signals_of(run)],
        "scores": cast("Any", [one.to_json(numbers.get(one.span_id)) for one in run.scores]),
        "spans": [span_object(root) for root in run.roots],
        "missing": [
            {
                "instance": gap.instance,
                "first": gap.first,
                "last": gap.last,
                "reason": gap.reason or None,
            }
            for gap in run.gaps
        ],
    }


def _exit(run: Run) -> PrintedExit | None:
    """How its first process ended; None if it has not ended, or not regularly."""
    ended = Outputs.exit_of(run.tapes[0]) if run.tapes else None
    if ended is None:
        return None
    error = ended.error
    return {
        "code": ended.code,
        "error": None if error is None else {"type": error.qualname, "message": error.message},
        "stderr": Outputs.last_of_stderr(run.tapes[0], LAST_LINES) if ended.code else [],
    }


def _command(run: Run) -> PrintedCommand | None:
    if not run.tapes or not any(True for _ in run.tapes[0].facts()):
        return None
    command = run.command
    return {
        "argv": command.shown(),
        "cwd": command.cwd,
        "interpreter": command.interpreter,
        "hash_seed": command.hash_seed,
        "script_digest": command.script_digest or None,
        "level": command.level,
    }


def _step(step: Step) -> PrintedStep:
    return {
        "number": step.number,
        "span_id": step.span.span_id,
        "name": step.span.name,
        "started_ns": step.span.started_ns,
        "ended_ns": step.span.ended_ns,
        "error": step.span.error or None,
        "attempts": len(step.attempts),
        "retries": step.retries,
    }


def tool_call_object(run: Run, call: ToolCallStep) -> PrintedOneToolCall:
    """Return a tool call with its run."""
    return {"schema_version": 1, "run": run.name, "trace_id": run.trace_id, **call.to_json()}


def span_object(span: Span) -> PrintedSpan:
    """Return a span with all its descendants."""
    return {
        "span_id": span.span_id,
        "parent_id": span.parent_id or None,
        "name": span.name,
        "kind": span.kind,
        "started_ns": span.started_ns,
        "ended_ns": span.ended_ns,
        "status": span.status,
        "status_message": span.status_message or None,
        "attributes": msgspec.to_builtins(span.attributes),
        "events": [
            {
                "name": event.name,
                "time_ns": event.time_ns,
                "attributes": msgspec.to_builtins(event.attributes),
            }
            for event in span.events
        ],
        "children": [span_object(child) for child in span.children],
    }


def log_object(line: LogLine) -> PrintedLogRecord:
    """Return a log record."""
    return {
        "time_ns": line.time_ns,
        "span_id": line.span_id or None,
        "level": line.level,
        "level_name": level_name(line.level) or None,
        "event": line.event or None,
        "logger": line.logger or None,
        "service": line.service or None,
        "body": msgspec.to_builtins(line.body),
        "attributes": msgspec.to_builtins(line.attributes),
    }


def step_object(run: Run, step: Step, messages: Messages) -> PrintedWholeStep:
    """Return a complete step."""
    decisions = decisions_of(run)
    return {
        "schema_version": 1,
        "run": run.name,
        "trace_id": run.trace_id,
        **_step(step),
        "attributes": msgspec.to_builtins(step.span.attributes),
        "system_instructions": [plain(part) for part in messages.system],
        "input_messages": [plain(message) for message in messages.input],
        "output_messages": [plain(message) for message in messages.output],
        "tool_definitions": [plain(tool) for tool in messages.tools],
        "states": [
            {"name": one.name, "value": one.value if one.has_content else None}
            for one in run.states
            if one.step == step.number
        ],
        "logs": [log_object(line) for line in run.log_lines(step)],
        "reports": cast("Any", [one.to_json() for one in run.reports if one.step == step.number]),
        "decisions": [one.to_json() for one in decisions if one.step == step.number],
        "scores": cast("Any", [one.to_json(step.number) for one in run.scores_of(step)]),
        "exchanges": [exchange.to_json() for exchange in run.exchanges_of(step)],
    }
