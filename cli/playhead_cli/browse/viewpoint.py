"""The position of the browser: row, tab and marks. Independent of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead_cli.browse.details import TABS, WantedDetails
from playhead_cli.browse.rows import BrowsedRows

if TYPE_CHECKING:
    from playhead_cli.browse.opened import OpenRun
    from playhead_cli.output.step_rows import Row


class Viewpoint:
    """A position in a run, and the selected details."""

    def __init__(self, source: OpenRun, step: int) -> None:
        """``step``: where to begin; 0 if there is none yet."""
        self._source = source
        self.rows = BrowsedRows(source.run)
        self.at = self.rows.of_step(step)
        self.tab = TABS[0]
        self.everything = False
        """All spans are shown, and nothing is folded."""
        self.breaks: set[str] = set()
        self.hits: set[str] = set()
        self._mark = ""
        self._against: str = ""
        """``mark``, ``origin``, or empty for the step before."""

    @property
    def row(self) -> Row | None:
        """The row where the cursor is; None if there is none yet."""
        return self.rows[self.at] if len(self.rows) else None

    @property
    def span_id(self) -> str:
        """The span of the row; empty if there is none."""
        return "" if self.row is None else self.row.span.span_id

    @property
    def number(self) -> int:
        """The step where the cursor is; 0 if there is none."""
        return self.rows.number(self.at)

    @property
    def wanted(self) -> WantedDetails:
        """The details to show."""
        return WantedDetails(self.tab, self.row, self.number, self.everything, self._compared_with())

    def flag(self, at: int) -> str:
        """One sign: whether the row is a breakpoint, or marked."""
        span_id = self.rows[at].span.span_id
        return "*" if span_id in self.breaks else "'" if span_id == self._mark else " "

    def toggle_break(self) -> None:
        """Set a breakpoint, or remove it."""
        self.breaks ^= {self.span_id}

    def mark(self) -> None:
        """Mark the row."""
        self._mark = self.span_id

    def swapped(self) -> int | None:
        """Return the marked row and mark that of the cursor; None if nothing is marked."""
        at = self._marked()
        if at is not None:
            self.mark()
        return at

    def toggle_everything(self) -> None:
        """Show all spans, or no longer; the cursor stays at its step."""
        number, self.everything = self.number, not self.everything
        self.renew(number)

    def renew(self, number: int = 0) -> None:
        """Replace the rows; the cursor stays at its span, else at the step ``number``."""
        span_id = self.span_id
        self.rows = BrowsedRows(self._source.run, self.everything)
        at = self.rows.place(span_id)
        if at is None:
            at = self.rows.of_step(number) if number else min(self.at, max(len(self.rows) - 1, 0))
        self.at = at

    def turn_difference(self) -> None:
        """Show the difference; if shown, switch its base: mark, origin, the step before."""
        ways = ["mark"] if self._mark else []
        ways += ["origin", ""] if self._source.run.origin else [""]
        if self.tab == "Diff" and self._against in ways:
            self._against = ways[(ways.index(self._against) + 1) % len(ways)]
        else:
            self._against = ways[0]
        self.tab = "Diff"

    def _marked(self) -> int | None:
        return self.rows.place(self._mark)

    def _compared_with(self) -> str:
        if self._against != "mark":
            return self._against
        at = self._marked()
        return "" if at is None else str(self.rows.number(at))
