"""The tool calls that the spans of a run tell of with arguments and result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from playhead_core.facts import ExchangeId
from playhead_genai.messages import ToolDefinition
from playhead_genai.rebuilding.tools import RebuildableTool, arguments_in
from playhead_replay.run.run import Run
from playhead_replay.run.spans import Span
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation


@dataclass(frozen=True, slots=True)
class ToolOfRun:
    """A tool call that a span describes."""

    span: Span
    step: int
    """Number of its step; 0 if another step has it."""
    tool: RebuildableTool


def tools_of(run: Run) -> list[ToolOfRun]:
    """Return the tool calls that can answer, in the order of their starts."""
    steps = {step.span.span_id: step.number for step in run.steps}
    offered = _offered(run)
    spans = sorted(run.spans, key=lambda span: span.started_ns)
    found = ((span, _tool(span, offered)) for span in spans if not _is_told_below(span))
    return [ToolOfRun(span, steps.get(span.span_id, 0), tool) for span, tool in found if tool]


def _offered(run: Run) -> dict[str, ToolDefinition]:
    """Return the definitions of tools by name, as requests to models have them."""
    return {one.name: one for step in run.calls for one in run.messages(step).tools}


def _tool(span: Span, offered: dict[str, ToolDefinition]) -> RebuildableTool | None:
    if _name(span) is None or span.pending or span.failed:
        return None
    at = span.attributes
    if at.get(a.GEN_AI_TOOL_CALL_RESULT) is None:
        return None
    name = str(at[a.GEN_AI_TOOL_NAME])
    definition = offered.get(name)
    return RebuildableTool(
        name,
        arguments_in(at.get(a.GEN_AI_TOOL_CALL_ARGUMENTS)),
        at[a.GEN_AI_TOOL_CALL_RESULT],
        is_exact=_is_of_marked_tool(at.get(a.PLAYHEAD_EXCHANGE_ID)),
        is_mcp=at.get(a.MCP_METHOD_NAME) == "tools/call",
        description=(definition.description if definition else None) or "",
        parameters=definition.parameters if definition else None,
    )


def _name(span: Span) -> Any:
    return span.attributes.get(a.GEN_AI_TOOL_NAME) if span.operation == Operation.EXECUTE_TOOL else None


def _is_told_below(span: Span) -> bool:
    """Whether a span inside tells of the same call: a framework's span is around that of its tool."""
    name = _name(span)
    below: Iterable[Span] = (one for one in span.walk() if one is not span) if name else ()
    return any(_name(one) == name for one in below)


def _is_of_marked_tool(value: Any) -> bool:
    try:
        return ExchangeId.parse(str(value)).kind == "tool"
    except ValueError:
        return False
