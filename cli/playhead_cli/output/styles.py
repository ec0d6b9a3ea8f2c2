"""The styles of all views."""

from __future__ import annotations

from collections.abc import Sequence

from rich.control import strip_control_codes
from rich.text import Span, Text

ERROR, FAINT, NUMBER, TITLE = "bold red", "dim", "cyan", "bold"
STATUS_STYLES = {"failure": "red", "interrupted": "yellow", "running": "cyan", "success": "green"}


def styled(parts: Sequence[tuple[str, str]]) -> Text:
    """Return a line of texts and their styles. Faster than appending one to the other."""
    spans: list[Span] = []
    plain = ""
    for text, style in parts:
        begin = len(plain)
        # `Text` strips these, too, and the spans would be off.
        plain += text if text.isprintable() else strip_control_codes(text)
        if style:
            spans.append(Span(begin, len(plain), style))
    return Text(plain, spans=spans)
