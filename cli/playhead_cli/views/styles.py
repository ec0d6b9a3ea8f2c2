"""The styles of all views."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Span, Text

ERROR, FAINT, NUMBER, TITLE = "bold red", "dim", "cyan", "bold"
STATUS_STYLES = {"failure": "red", "interrupted": "yellow", "running": "cyan", "success": "green"}


def styled(parts: Sequence[tuple[str, str]]) -> Text:
    """A line of texts and their styles. Faster than appending one to the other."""
    spans: list[Span] = []
    end = 0
    for text, style in parts:
        begin, end = end, end + len(text)
        if style:
            spans.append(Span(begin, end, style))
    return Text("".join(text for text, _ in parts), spans=spans)
