"""A window on the tree of a run's spans: the part below one of them, some of its lines."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from playhead_receiver.query.problems import NotFound
from playhead_receiver.store.fold import SpanRow


class Line(msgspec.Struct, frozen=True):
    """A span in the tree, depth first in order of start."""

    row: SpanRow
    depth: int
    """0 for a root, or for the span that was asked for."""
    children: int
    descendants: int
    failures: int
    """Spans that failed, itself and below."""


def lines_of(rows: Sequence[SpanRow], under: bytes = b"", depth: int | None = None) -> list[Line]:
    """The lines below ``under`` (that span first; empty: of all roots), at most ``depth`` levels deep.

    A span whose parent is not there is a root; of spans in a ring one is. `NotFound`.
    """
    known = {row.span_id: row for row in rows}
    children: dict[bytes, list[SpanRow]] = {}
    roots: list[SpanRow] = []
    for row in sorted(known.values(), key=lambda row: (row.start_ns, row.span_id)):
        if row.parent in known and row.parent != row.span_id:
            children.setdefault(row.parent, []).append(row)
        else:
            roots.append(row)
    order = _depth_first(roots, children)
    if len(order) < len(known):  # rings
        seen = {row.span_id for row, _ in order}
        for row in sorted(known.values(), key=lambda row: (row.start_ns, row.span_id)):
            if row.span_id not in seen:
                ring = _depth_first([row], children, seen)
                seen |= {one.span_id for one, _ in ring}
                order += ring
    below, failures = _sums(order)
    begin, end, base = 0, len(order), 0
    if under:
        begin = next((at for at, (row, _) in enumerate(order) if row.span_id == under), -1)
        if begin < 0:
            raise NotFound(f"the run has no span {under.hex()}")
        end, base = begin + below[begin] + 1, order[begin][1]
    return [
        Line(row, at_depth - base, len(children.get(row.span_id, ())), below[at], failures[at])
        for at, (row, at_depth) in enumerate(order[begin:end], begin)
        if depth is None or at_depth - base <= depth
    ]


def _depth_first(
    roots: Sequence[SpanRow], children: dict[bytes, list[SpanRow]], seen: set[bytes] | None = None
) -> list[tuple[SpanRow, int]]:
    order: list[tuple[SpanRow, int]] = []
    met = set(seen or ())
    stack = [(row, 0) for row in reversed(roots)]
    while stack:
        row, depth = stack.pop()
        if row.span_id in met:
            continue
        met.add(row.span_id)
        order.append((row, depth))
        stack += [(child, depth + 1) for child in reversed(children.get(row.span_id, ()))]
    return order


def _sums(order: Sequence[tuple[SpanRow, int]]) -> tuple[list[int], list[int]]:
    """How many are below each, and how many of these and itself failed."""
    below, failures = [0] * len(order), [int(row.failed) for row, _ in order]
    open_: list[int] = []
    for at, (_, depth) in enumerate(order):
        _close(open_, order, depth, below, failures)
        open_.append(at)
    _close(open_, order, 0, below, failures)
    return below, failures


def _close(
    open_: list[int],
    order: Sequence[tuple[SpanRow, int]],
    depth: int,
    below: list[int],
    failures: list[int],
) -> None:
    while open_ and order[open_[-1]][1] >= depth:
        done = open_.pop()
        if open_ and order[open_[-1]][1] < order[done][1]:
            below[open_[-1]] += below[done] + 1
            failures[open_[-1]] += failures[done]
