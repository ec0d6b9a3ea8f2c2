"""Search the text of a run: names, errors, and the messages that each step adds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from playhead_cli.output.message_text import body_text
from playhead_cli.output.words import label
from playhead_core.errors import TapeError
from playhead_genai.messages import plain
from playhead_genai.readable_text import OF_CONVENTIONS, news, text_of
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_cli.output.step_rows import Row
    from playhead_replay import Run, Step


def pattern_of(text: str) -> re.Pattern[str]:
    """Matches the exact text, ignoring case."""
    return re.compile(re.escape(text), re.IGNORECASE)


def says(run: Run, row: Row, wanted: re.Pattern[str]) -> bool:
    """Return whether a text occurs in a row."""
    return any(wanted.search(text) for text in _texts(run, row))


def _texts(run: Run, row: Row) -> Iterator[str]:
    span = row.span
    yield label(span)
    yield span.error
    for name, value in span.attributes.items():
        if not name.startswith(OF_CONVENTIONS):
            yield f"{name}: {text_of(value)}"
    if row.step is not None:
        yield from _said(run, row.step)


def _said(run: Run, step: Step) -> Iterator[str]:
    at = step.span.attributes
    for name in (a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT):
        if name in at:
            yield text_of(at[name])
    messages = run.messages(step)
    new = news(messages.input)
    if len(new) == len(messages.input):
        yield from (text_of(value) for part in messages.system for value in plain(part).values())
    for message in (*new, *messages.output):
        for part in message.parts:
            yield from (text_of(value) for value in plain(part).values())
    if not messages.input and not messages.output:
        for exchange in run.exchanges_of(step)[-1:]:
            try:
                yield exchange.request.decode(errors="replace")
                yield body_text(exchange)
            except TapeError:
                return
