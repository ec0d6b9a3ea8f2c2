"""The span of a tool that a framework calls, for what is recorded inside the tool.

A framework's tool may do nothing but call an MCP server, or a function that `playhead.tool` marks. That
is one step, not two: the inner call takes over the span of the outer one, as the conventions ask.
"""

from __future__ import annotations

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

_TOOL = otel_context.create_key("playhead-tool")


class ToolSpan:
    """The span of one call of a framework's tool."""

    __slots__ = ("name", "span", "taken")

    def __init__(self, name: str, span: trace.Span) -> None:
        self.name = name
        self.span = span
        self.taken = False


def entered(context: Context, tool: ToolSpan) -> Context:
    """Return ``context`` with the call of ``tool`` in it."""
    return otel_context.set_value(_TOOL, tool, context)


def take_tool_span(name: str) -> trace.Span | None:
    """Return the current span if a framework made it for a call of the tool ``name``; else None.

    Only the first call inside takes it. Who takes it sets attributes, but does not end it.
    """
    tool = otel_context.get_value(_TOOL)
    if (
        not isinstance(tool, ToolSpan)
        or tool.taken
        or tool.name != name
        or trace.get_current_span() is not tool.span
    ):
        return None
    tool.taken = True
    return tool.span
