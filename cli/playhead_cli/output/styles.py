"""The styles of all views."""

from __future__ import annotations

from rich.cells import cell_len
from rich.control import strip_control_codes
from rich.text import Span, Text

ERROR, FAINT, NUMBER, TITLE = "bold red", "dim", "cyan", "bold"
STATUS_STYLES = {"failure": "red", "interrupted": "yellow", "running": "cyan", "success": "green"}


class StyledLine:
    """A line of texts and their styles. It becomes a `Text` only if a terminal shows the styles."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[tuple[str, str]]) -> None:
        self._parts = parts

    def append(self, text: str, style: str = "") -> None:
        """Add a text at the end."""
        self._parts.append((text, style))

    @property
    def plain(self) -> str:
        """The text, without the control codes that `Text` removes, too."""
        return _without_codes("".join([text for text, _ in self._parts]))

    @property
    def cell_len(self) -> int:
        """Number of columns."""
        return cell_len(self.plain)

    def __rich__(self) -> Text:
        """Return the line with its styles."""
        spans: list[Span] = []
        plain = ""
        for text, style in self._parts:
            begin = len(plain)
            plain += _without_codes(text)
            if style:
                spans.append(Span(begin, len(plain), style))
        return Text(plain, spans=spans)


def _without_codes(text: str) -> str:
    return text if text.isprintable() else strip_control_codes(text)
