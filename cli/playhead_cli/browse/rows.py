"""The rows of a run as it is browsed, and the ways from one to another. Ends stop."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal, TypeAlias

from playhead_cli.output.step_rows import Row, rows_of
from playhead_cli.output.tree import heading

if TYPE_CHECKING:
    from playhead_replay import Run

Way: TypeAlias = Literal[1, -1]
"""Forwards or backwards."""


class BrowsedRows:
    """Steps and the frames around them, depth first; with ``everything`` all other spans, too."""

    def __init__(self, run: Run, everything: bool = False) -> None:
        self._run = run
        self._rows = rows_of(run, everything)
        self._places = {row.span.span_id: at for at, row in enumerate(self._rows)}
        self.heading = heading(run)
        """Name, status and sums of the run."""
        self.errors = [self.of_step(step.number) for step in run.errors]
        """The rows of steps that failed."""

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: int) -> Row:
        return self._rows[at]

    def place(self, span_id: str) -> int | None:
        """Return the row of a span; None if it has none."""
        return self._places.get(span_id)

    def of_step(self, number: int) -> int:
        """Return the row of a step; the last one if there is no such step."""
        step = self._run.step(number)
        return max(len(self) - 1, 0) if step is None else self._places[step.span.span_id]

    def number(self, at: int) -> int:
        """Return the step that the row is, is a part of, or is followed by; 0 if there is no step."""
        if not self._rows:
            return 0
        row = self._rows[at]
        step = row.step or self._run.step_of(row.span.span_id)
        if step is None:
            after = self.step(at, 1)
            step = self._rows[after if after != at else self.step(at, -1)].step
        return 0 if step is None else step.number

    def row(self, at: int, rows: int) -> int:
        """So many rows on, or back."""
        return min(max(at + rows, 0), max(len(self) - 1, 0))

    def step(self, at: int, way: Way) -> int:
        """Return the next step, into whatever encloses it."""
        return self._first(at, way, lambda row: row.step is not None)

    def over(self, at: int, way: Way) -> int:
        """Return the next row that is not inside this one."""
        depth = self._rows[at].depth if self._rows else 0
        return self._first(at, way, lambda row: row.depth <= depth)

    def finish(self, at: int, way: Way) -> int:
        """Forwards the row after the frame around this one; backwards the frame itself."""
        depth = self._rows[at].depth if self._rows else 0
        return self._first(at, way, lambda row: row.depth < depth)

    def error(self, at: int, way: Way) -> int:
        """Return the next step that failed."""
        return self._first(at, way, lambda row: row.step is not None and row.span.failed)

    def among(self, spans: Collection[str], at: int, way: Way) -> int:
        """Return the next row of one of these spans."""
        return self._first(at, way, lambda row: row.span.span_id in spans)

    def _first(self, at: int, way: Way, wanted: Callable[[Row], bool]) -> int:
        end = len(self._rows) if way > 0 else -1
        return next((place for place in range(at + way, end, way) if wanted(self._rows[place])), at)
