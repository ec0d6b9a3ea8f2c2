"""The tree of a run's spans, of which pages show some lines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from playhead_receiver.api.problems import NotFound
from playhead_receiver.storage import Store
from playhead_receiver.storage.runs.summary_fold import counted_steps
from playhead_receiver.storage.values.span_labels import SpanRow

ROW_BYTES = 700
"""Approximate memory use of a span in a tree."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """A span in the tree; lines are depth first, in order of start."""

    row: SpanRow
    depth: int
    """0 for a root, or for the requested span."""
    children: int
    descendants: int
    failures: int
    """Number of failed spans in this subtree, including the span itself."""
    step: bool
    """Whether the span is a step."""


class Tree:
    """The spans of a run, depth first in order of start. A span whose parent is missing is a root.

    Item n of each list belongs to line n.
    """

    def __init__(self, rows: Sequence[SpanRow]) -> None:
        known = {row.span_id: row for row in rows}
        self._children: dict[bytes, list[SpanRow]] = {}
        roots: list[SpanRow] = []
        for row in sorted(known.values(), key=_begin):
            if row.parent in known:
                self._children.setdefault(row.parent, []).append(row)
            else:
                roots.append(row)
        self.names: dict[bytes, str] | None = None
        """Names of its spans by id; None until they are read."""
        self.rows: list[SpanRow] = []
        self.depths: list[int] = []
        """0 for a root."""
        self.parents: list[int] = []
        """Line of the parent; -1 for a root."""
        self._walk(roots)
        self.descendants = [0] * len(self.rows)
        """Number of lines below a line, which follow it."""
        self._failures = [int(row.failed) for row in self.rows]
        for at in range(len(self.rows) - 1, -1, -1):
            parent = self.parents[at]
            if parent >= 0:
                self.descendants[parent] += self.descendants[at] + 1
                self._failures[parent] += self._failures[at]

    @classmethod
    def load(cls, store: Store, trace_id: str) -> Tree:
        """The tree of a stored run."""
        return cls(store.outline(bytes.fromhex(trace_id)))

    @property
    def size_bytes(self) -> int:
        """Approximate memory use."""
        return ROW_BYTES * len(self.rows)

    @cached_property
    def step_numbers(self) -> dict[bytes, int]:
        """The number of each step, from 1, in order of start, by span id."""
        counted = counted_steps(self.rows)
        steps = sorted((row for row in self.rows if row.span_id in counted), key=_begin)
        return {row.span_id: number for number, row in enumerate(steps, 1)}

    def places(self, under: bytes = b"", depth: int | None = None) -> Sequence[int]:
        """Indices of the lines below ``under``, at most ``depth`` levels deep. `NotFound`.

        The span ``under`` comes first; empty: the whole tree.
        """
        begin, end, base = 0, len(self.rows), 0
        if under:
            begin = next((at for at, row in enumerate(self.rows) if row.span_id == under), -1)
            if begin < 0:
                raise NotFound(f"the run has no span {under.hex()}")
            end, base = begin + self.descendants[begin] + 1, self.depths[begin]
        if depth is None:
            return range(begin, end)
        return [at for at in range(begin, end) if self.depths[at] - base <= depth]

    def lines(self, places: Sequence[int], base: int = 0) -> list[Line]:
        """The lines at the given indices; ``base`` is the depth of the first."""
        return [
            Line(
                self.rows[at],
                self.depths[at] - base,
                len(self._children.get(self.rows[at].span_id, ())),
                self.descendants[at],
                self._failures[at],
                self.rows[at].span_id in self.step_numbers,
            )
            for at in places
        ]

    def _walk(self, roots: Sequence[SpanRow]) -> None:
        stack = [(row, 0, -1) for row in reversed(roots)]
        while stack:
            row, depth, parent = stack.pop()
            at = len(self.rows)
            self.rows.append(row)
            self.depths.append(depth)
            self.parents.append(parent)
            below = self._children.get(row.span_id)
            if below is not None:
                stack += [(child, depth + 1, at) for child in reversed(below)]


def _begin(row: SpanRow) -> tuple[int, bytes]:
    return row.start_ns, row.span_id
