"""A replay from a given step on, as lines and as plain objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.step.conversation import ANSWERED, ASKED, message_lines
from playhead_cli.output.styles import ERROR, FAINT, NUMBER
from playhead_cli.output.words import label
from playhead_genai.messages import plain
from playhead_genai.readable_text import news

if TYPE_CHECKING:
    from playhead_cli.json_output.runs import PrintedReplayedStep
    from playhead_replay.runner.from_a_step import ShownStep


def shown_lines(one: ShownStep) -> Iterator[Text]:
    """A step: new messages, the answer, and what the program printed afterwards."""
    line = Text(f"{one.step.number:>3} ", NUMBER)
    line.append(f"{one.fidelity or '-':<8}", style=ERROR if one.fidelity == "blocked" else FAINT)
    line.append(label(one.step.span))
    if one.recorded not in (None, one.step.number):
        line.append(f"  step {one.recorded} of the tape", style=FAINT)
    yield line
    for message in news(one.messages.input):
        yield from message_lines(message, ASKED)
    for message in one.messages.output:
        yield from message_lines(message, ANSWERED)
    for name, lines in _streams(one):
        yield Text()
        yield Text(name, FAINT)
        yield from (Text(f"  {line}") for line in lines)
    yield Text()


def shown_object(one: ShownStep) -> PrintedReplayedStep:
    """A step as an object, with all messages."""
    return {
        "number": one.step.number,
        "recorded_number": one.recorded,
        "name": one.step.span.name,
        "fidelity": one.fidelity or None,
        "input_messages": [plain(message) for message in one.messages.input],
        "output_messages": [plain(message) for message in one.messages.output],
        "printed": [{"stream": name, "text": text} for name, text in one.printed],
    }


def _streams(one: ShownStep) -> Iterator[tuple[str, list[str]]]:
    for name in ("stdout", "stderr"):
        text = "".join(piece for stream, piece in one.printed if stream == name)
        if text:
            yield name, text.splitlines()
