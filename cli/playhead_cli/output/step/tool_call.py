"""A tool call that only the messages of a run report: arguments, result and time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.step.bodies import text_lines
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, TITLE
from playhead_cli.output.words import took, tool_label
from playhead_genai.readable_text import text_of

if TYPE_CHECKING:
    from playhead_replay.timeline.tool_calls import ToolCallStep


def tool_call_lines(call: ToolCallStep, everything: bool = False) -> Iterator[Text]:
    """Yield the lines of a tool call. ``everything``: nothing is folded."""
    line = Text(f"{call.number} ", NUMBER)
    line.append(tool_label(call), TITLE)
    if call.error:
        line.append("  failed", ERROR)
    yield line
    yield Text("arguments", TITLE)
    yield from text_lines(text_of(call.arguments), everything=everything)
    yield Text("result", TITLE)
    if call.ended_ns is None:
        yield Text("  no later request has it", FAINT)
    else:
        yield from text_lines(text_of(call.result), everything=everything)
    figures = [f"call {call.id}"] if call.id else []
    if call.attempt > 1:
        figures.append(f"attempt {call.attempt}")
    if call.duration_ns is not None:
        figures.append(f"at most {took(call.duration_ns)}")
    yield Text()
    yield Text(", ".join([*figures, f"derived from the messages after step {call.step.number}"]), FAINT)
