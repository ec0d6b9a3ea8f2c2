"""Evaluates a TraceQL query on a trace."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from playhead_receiver.api.compatibility.spans import Seen, SeenTrace
from playhead_receiver.api.tempo.traceql.conditions import matches
from playhead_receiver.api.tempo.traceql.tree import (
    Aggregate,
    Coalesce,
    Combined,
    Expression,
    Field,
    Filter,
    GroupBy,
    Literal_,
    Piped,
    Select,
    SpanQuery,
    Spans,
    Stage,
    Unary,
    Where,
)
from playhead_receiver.api.tempo.traceql.values import Typed, Values

ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "^": operator.pow,
}
_NUMBERS = ("number", "duration")
_TRUE: Typed = ("bool", True)


class Spanset(msgspec.Struct, frozen=True):
    """Matching spans of one trace, in order of their start."""

    spans: Sequence[Seen]
    group: tuple[str, Any] | None = None
    """Name and value by which they were grouped, from ``by``."""


class Matcher:
    """Evaluates queries on one trace."""

    def __init__(self, trace: SeenTrace) -> None:
        self.trace = trace
        self.values = Values(trace)

    def find(self, query: SpanQuery) -> list[Spanset]:
        """The non-empty spansets that result from the query's stages before a metric."""
        return self._through(query.spans, query.stages)

    def _through(self, spans: Spans, stages: Iterable[Stage]) -> list[Spanset]:
        sets = [Spanset(self.spans(spans))]
        for stage in stages:
            if isinstance(stage, Where):
                kept = {span.span_id for span in self.spans(stage.spans)}
                sets = [
                    Spanset([span for span in one.spans if span.span_id in kept], one.group)
                    for one in sets
                ]
            elif isinstance(stage, GroupBy):
                sets = [group for one in sets for group in self._grouped(one, stage)]
            elif isinstance(stage, Coalesce):
                sets = [Spanset(self._in_order(span for one in sets for span in one.spans))]
            elif isinstance(stage, Aggregate):
                sets = [one for one in sets if one.spans and self._holds(one, stage)]
            elif not isinstance(stage, Select):
                break
        return [one for one in sets if one.spans]

    def spans(self, wanted: Spans) -> list[Seen]:
        """The spans that match."""
        if isinstance(wanted, Filter):
            condition = wanted.condition
            if condition is None:
                return self.trace.spans
            return [span for span in self.trace.spans if self.holds(condition, span)]
        if isinstance(wanted, Piped):
            left = self._through(wanted.spans, wanted.stages)
            return self._in_order(span for one in left for span in one.spans)
        left, right = self.spans(wanted.left), self.spans(wanted.right)
        if wanted.op == "||":
            return self._in_order((*left, *right))
        if wanted.op == "&&":
            return self._in_order((*left, *right)) if left and right else []
        return self._related(wanted, left, right)

    def holds(self, condition: Expression, span: Seen) -> bool:
        """Whether the condition is true for a span."""
        return any(one == _TRUE for one in self.evaluate(condition, span))

    def evaluate(self, node: Expression, span: Seen) -> list[Typed]:
        """The values of an expression; empty if it is not defined for this span."""
        if isinstance(node, Literal_):
            return [(node.kind, node.value)]
        if isinstance(node, Field):
            return self.values.of(node, span)
        if isinstance(node, Unary):
            return [
                ("bool", not value) if node.op == "!" else (kind, -value)
                for kind, value in self.evaluate(node.operand, span)
                if (kind == "bool") == (node.op == "!") and (kind == "bool" or kind in _NUMBERS)
            ]
        if node.op == "&&":
            return [("bool", self.holds(node.left, span) and self.holds(node.right, span))]
        if node.op == "||":
            return [("bool", self.holds(node.left, span) or self.holds(node.right, span))]
        left, right = self.evaluate(node.left, span), self.evaluate(node.right, span)
        if node.op in _ARITHMETIC:
            return [one for a in left for b in right for one in _computed(node.op, a, b)]
        return [("bool", _compared(node.op, left, right))]

    def _grouped(self, one: Spanset, stage: GroupBy) -> list[Spanset]:
        groups: dict[Any, list[Seen]] = {}
        for span in one.spans:
            for _, value in self.evaluate(stage.field, span)[:1] or [("nil", None)]:
                groups.setdefault(value, []).append(span)
        name = stage.field.text if isinstance(stage.field, Field) else ""
        return [Spanset(spans, (f"by({name})", value)) for value, spans in groups.items()]

    def _holds(self, one: Spanset, stage: Aggregate) -> bool:
        values: list[float] = [len(one.spans)]
        if stage.field is not None:
            field = stage.field
            found = (value for span in one.spans for value in self.evaluate(field, span))
            values = [value for kind, value in found if kind in _NUMBERS]
            if not values:
                return False
        number = {
            "count": values[0],
            "avg": sum(values) / len(values),
            "sum": sum(values),
            "min": min(values),
            "max": max(values),
        }[stage.function]
        return _compared(stage.op, [("number", number)], [(stage.value.kind, stage.value.value)])

    def _related(self, wanted: Combined, left: list[Seen], right: list[Seen]) -> list[Seen]:
        op = wanted.op.lstrip("&!")
        pairs = self._pairs(op, {one.span_id for one in left}, right)
        if wanted.op.startswith("!"):
            met = {id for _, id in pairs}
            return [span for span in right if span.span_id not in met]
        ids = {id for _, id in pairs}
        if wanted.op.startswith("&"):
            ids |= {id for id, _ in pairs}
        return [span for span in self.trace.spans if span.span_id in ids]

    def _pairs(self, op: str, left: set[bytes], right: list[Seen]) -> set[tuple[bytes, bytes]]:
        """Pairs of span ids, left and right, that are in the relation ``op``."""
        found: set[tuple[bytes, bytes]] = set()
        above = {span.span_id: self._above(span) for span in right} if op in ("<<", ">>") else {}
        if op == ">>":
            found = {(id, one.span_id) for one in right for id in above[one.span_id] if id in left}
        elif op == ">":
            found = {(one.parent, one.span_id) for one in right if one.parent in left}
        elif op == "<<":
            ids = {one.span_id for one in right}
            for id in left:
                found |= {(id, up) for up in self._above(self.trace.by_id[id]) if up in ids}
        elif op == "<":
            ids = {one.span_id for one in right}
            parents = ((id, self.trace.by_id[id].parent) for id in left)
            found = {(id, parent) for id, parent in parents if parent in ids}
        else:  # siblings
            for one in right:
                for other in self.trace.children.get(one.parent, ()):
                    if other.span_id in left and other.span_id != one.span_id:
                        found.add((other.span_id, one.span_id))
        return found

    def _above(self, span: Seen) -> list[bytes]:
        found: list[bytes] = []
        met = {span.span_id}
        while span.parent in self.trace.by_id and span.parent not in met:
            met.add(span.parent)
            found.append(span.parent)
            span = self.trace.by_id[span.parent]
        return found

    def _in_order(self, spans: Iterable[Seen]) -> list[Seen]:
        ids = {span.span_id for span in spans}
        return [span for span in self.trace.spans if span.span_id in ids]


def _compared(op: str, left: list[Typed], right: list[Typed]) -> bool:
    """Whether any pair of values satisfies ``op``; for a negated operator, whether all pairs do."""
    if right == [("nil", None)] or left == [("nil", None)]:
        there = left if right == [("nil", None)] else right
        return (not there) == (op == "=") if op in ("=", "!=") else False
    pairs = [(a, b) for a in left for b in right if _alike(a[0], b[0])]
    if op in ("=~", "!~"):
        found = [matches(str(a[1]), str(b[1])) for a, b in pairs if a[0] == b[0] == "string"]
        return bool(found) and (any(found) if op == "=~" else not any(found))
    if op == "!=":
        return bool(pairs) and all(a[1] != b[1] for a, b in pairs)
    if op != "=" and any(a[0] in ("bool", "status", "kind") for a, _ in pairs):
        return False
    return any(ORDER[op](a[1], b[1]) for a, b in pairs)


def _alike(left: str, right: str) -> bool:
    return left == right or (left in _NUMBERS and right in _NUMBERS)


def _computed(op: str, left: Typed, right: Typed) -> list[Typed]:
    if left[0] not in _NUMBERS or right[0] not in _NUMBERS:
        return []
    kind = "duration" if "duration" in (left[0], right[0]) else "number"
    try:
        base, exponent = left[1], right[1]
        value = float(base) ** float(exponent) if op == "^" else _ARITHMETIC[op](base, exponent)
    except (ZeroDivisionError, OverflowError):
        return []
    return [] if isinstance(value, complex) else [(kind, value)]
