"""A TraceQL query as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["string", "number", "duration", "bool", "status", "kind", "nil"]


class Literal_(msgspec.Struct, frozen=True):
    """A constant. Durations are in ns; statuses and kinds are OTLP's numbers."""

    value: Any
    kind: Kind


class Field(msgspec.Struct, frozen=True):
    """A property of a span: an attribute, or an intrinsic (scope ``intrinsic``)."""

    scope: str
    """``span``, ``resource``, ``event``, ``link``, ``instrumentation``, ``intrinsic``; empty: any."""
    name: str
    of_parent: bool = False
    text: str = ""
    """The source text of the field."""


class Unary(msgspec.Struct, frozen=True):
    """``!`` or ``-``."""

    op: str
    operand: Expression


class Binary(msgspec.Struct, frozen=True):
    """An operation on two values, or a comparison of them."""

    op: str
    left: Expression
    right: Expression


Expression: TypeAlias = Literal_ | Field | Unary | Binary


class Filter(msgspec.Struct, frozen=True):
    """``{…}``: the spans for which the condition is true; None: all."""

    condition: Expression | None


class Combined(msgspec.Struct, frozen=True):
    """Two spansets and the relation between their spans."""

    op: str
    left: Spans
    right: Spans


class Piped(msgspec.Struct, frozen=True):
    """``({…} | count() > 1)``: the spans that remain after some stages."""

    spans: Spans
    stages: tuple[Stage, ...]


Spans: TypeAlias = Filter | Combined | Piped


class Where(msgspec.Struct, frozen=True):
    """``| {…}``: filters the current spans."""

    spans: Spans


class Select(msgspec.Struct, frozen=True):
    """``| select(…)``: fields to show for each span."""

    fields: tuple[Field, ...]


class GroupBy(msgspec.Struct, frozen=True):
    """``| by(…)``: one spanset for each value."""

    field: Expression


class Coalesce(msgspec.Struct, frozen=True):
    """``| coalesce()``: merges all spansets into one."""


class Aggregate(msgspec.Struct, frozen=True):
    """``| avg(duration) > 1s``: compares an aggregate of a spanset."""

    function: str
    field: Expression | None
    op: str
    value: Literal_


class Metric(msgspec.Struct, frozen=True):
    """``| rate() by(…)``: a number for each time step."""

    function: str
    field: Expression | None = None
    numbers: tuple[float, ...] = ()
    by: tuple[Field, ...] = ()
    selection: Filter | None = None
    """The selection of ``compare``."""


class Cut(msgspec.Struct, frozen=True):
    """``| topk(n)`` and ``bottomk(n)``."""

    function: str
    count: int


class Threshold(msgspec.Struct, frozen=True):
    """``| rate() > 10``: keeps the values of a metric that satisfy the comparison."""

    op: str
    value: Literal_


Stage: TypeAlias = Where | Select | GroupBy | Coalesce | Aggregate | Metric | Cut | Threshold


class SpanQuery(msgspec.Struct, frozen=True):
    """A complete query."""

    spans: Spans
    stages: tuple[Stage, ...] = ()
    hints: dict[str, Any] = {}

    @property
    def metric(self) -> Metric | None:
        """The metric, if it is a metrics query."""
        return next((one for one in self.stages if isinstance(one, Metric)), None)

    def fields(self) -> Iterator[Field]:
        """All fields to which the query refers."""
        return _fields(self)


class Calculation(msgspec.Struct, frozen=True):
    """``({…} | rate()) / ({…} | rate())``: combines two metrics, or a metric and a number."""

    op: str
    left: SpanQuery | Calculation | float
    right: SpanQuery | Calculation | float
    stages: tuple[Stage, ...] = ()
    hints: dict[str, Any] = {}


def _fields(node: Any) -> Iterator[Field]:
    if isinstance(node, Field):
        yield node
    elif isinstance(node, msgspec.Struct):
        for name in node.__struct_fields__:
            yield from _fields(getattr(node, name))
    elif isinstance(node, tuple):
        for one in node:  # pyright: ignore[reportUnknownVariableType]
            yield from _fields(one)
