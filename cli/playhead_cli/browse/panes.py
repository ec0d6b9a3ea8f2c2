"""The two panes, which make only the lines that are on the screen, and the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.console import Console
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

_PLAIN = Console(width=1000, no_color=True)
"""Measures and wraps; nothing is printed on it."""


class StepList(ScrollView, can_focus=True, inherit_bindings=False):
    """The rows of a run, one line each. ``line_of``: makes the line of a row."""

    class Chosen(Message):
        """The user clicked a row."""

        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

    def __init__(self, line_of: Callable[[int], Text]) -> None:
        super().__init__(id="steps")
        self._line_of = line_of
        self._count = 0
        self._at = 0

    def show(self, count: int, at: int) -> None:
        """Show ``count`` rows, with the cursor on row ``at``."""
        before = self._at
        self._at = at
        if count != self._count:
            self._count = count
            self.virtual_size = Size(self.size.width, count)
            self.refresh()
        else:
            self.refresh_line(before)
            self.refresh_line(at)
        self._keep_in_sight()

    def on_resize(self, event: Resize) -> None:
        """The cursor stays in sight."""
        self.virtual_size = Size(event.size.width, self._count)
        self._keep_in_sight()

    def on_click(self, event: Click) -> None:
        """A click puts the cursor there."""
        at = event.y + self.scroll_offset.y
        if at < self._count:
            self.post_message(self.Chosen(at))

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        at, width = y + self.scroll_offset.y, self.size.width
        if at >= self._count:
            return Strip.blank(width, self.rich_style)
        line = self._line_of(at)
        line.truncate(width, overflow="ellipsis", pad=True)
        return _strip(line, width, self.rich_style, "reverse" if at == self._at else "")

    def _keep_in_sight(self) -> None:
        height, top = self.size.height, self.scroll_offset.y
        if not height:
            return
        if self._at < top:
            self.scroll_to(y=self._at, animate=False)
        elif self._at >= top + height:
            self.scroll_to(y=self._at - height + 1, animate=False)


class Details(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines of text, wrapped at its width."""

    def __init__(self) -> None:
        super().__init__(id="details")
        self._lines: Sequence[Text] = ()
        self._wrapped: list[Text] = []
        self._width = 0

    def show(self, lines: Sequence[Text], *, from_top: bool) -> None:
        """Show other lines. ``from_top``: else the place stays."""
        self._lines, self._width = lines, 0
        self._wrap()
        if from_top:
            self.scroll_to(y=0, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        """Wrap the lines again."""
        self._wrap()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        at, width = y + self.scroll_offset.y, self.size.width
        if at >= len(self._wrapped):
            return Strip.blank(width, self.rich_style)
        return _strip(self._wrapped[at], width, self.rich_style)

    def _wrap(self) -> None:
        width = self.scrollable_content_region.width
        if not width or width == self._width:
            return
        self._width = width
        self._wrapped = [
            part
            for line in self._lines
            for part in (
                line.wrap(_PLAIN, width, overflow="fold", tab_size=4)
                if line.cell_len > width or "\t" in line.plain
                else (line,)
            )
        ]
        self.virtual_size = Size(width, len(self._wrapped))


class Prompt(Input):
    """The line in which a text to find, or a command, is typed. ``escape`` leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.leave_prompt", show=False)]

    def ask(self, placeholder: str, text: str) -> None:
        """Begin with ``text``. The next key goes here already."""
        self.placeholder, self.value, self.cursor_position = placeholder, text, len(text)
        self.display = True
        self.screen.set_focus(self)


def _strip(line: Text, width: int, style: Style, more: str = "") -> Strip:
    strip = Strip(line.render(_PLAIN)).adjust_cell_length(width)
    strip = strip.apply_style(style)
    return (
        strip
        if not more
        else Strip(
            segment._replace(style=(segment.style or Style.null()) + Style.parse(more))
            for segment in strip
        )
    )
