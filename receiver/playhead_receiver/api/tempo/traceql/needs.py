"""What a trace must have so that a query can match it, as keys of the attribute index."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from playhead_receiver.api.compatibility.spans import ERROR, NO_SERVICE
from playhead_receiver.api.tempo.traceql.tree import (
    Binary,
    Expression,
    Field,
    Filter,
    Literal_,
    Piped,
    SpanQuery,
    Spans,
    Stage,
    Where,
)
from playhead_receiver.storage.runs import attribute_keys as keys
from playhead_receiver.storage.values.run_summaries import Need
from playhead_semconv import attributes as a

_COMPARED = ("=", "!=", ">", ">=", "<", "<=", "=~", "!~")
_NIL = Literal_(None, "nil")
_WORDS = re.compile(r"(?:[\w \-/:@]|\\\.)+(?:\|(?:[\w \-/:@]|\\\.)+)*", re.ASCII)
"""A pattern that is an alternative of plain texts, which viewers generate for several values."""


def needs_of(query: SpanQuery) -> set[Need]:
    """The needs, all of which must be met. Empty if nothing can be concluded."""
    return _of_pipeline(query.spans, query.stages)


def field_needs(field: Field) -> set[Need]:
    """The needs for a field to have any value."""
    if field.scope == "intrinsic" or field.name == a.PLAYHEAD_COST_USD:
        return set()
    return {keys.has(field.name)}


def _of_pipeline(spans: Spans, stages: Iterable[Stage]) -> set[Need]:
    found = _of_spans(spans)
    for stage in stages:
        if isinstance(stage, Where):
            found |= _of_spans(stage.spans)
    return found


def _of_spans(wanted: Spans) -> set[Need]:
    if isinstance(wanted, Piped):
        return _of_pipeline(wanted.spans, wanted.stages)
    if isinstance(wanted, Filter):
        return set() if wanted.condition is None else _of(wanted.condition)
    if wanted.op == "||":
        return _either(_of_spans(wanted.left), _of_spans(wanted.right))
    if wanted.op.startswith("!"):
        return _of_spans(wanted.right)
    return _of_spans(wanted.left) | _of_spans(wanted.right)


def _of(node: Expression) -> set[Need]:
    if isinstance(node, Field):
        return _equal(node, True)
    if not isinstance(node, Binary):
        return set()
    if node.op == "&&":
        return _of(node.left) | _of(node.right)
    if node.op == "||":
        return _either(_of(node.left), _of(node.right))
    if node.op not in _COMPARED:
        return set()
    left, right = node.left, node.right
    if _NIL in (left, right) and node.op == "=":
        return set()
    if isinstance(right, Field):
        left, right = right, left
    if isinstance(left, Field) and isinstance(right, Literal_) and right.value is not None:
        if node.op == "=":
            return _equal(left, right.value)
        if node.op == "=~" and left is node.left and _WORDS.fullmatch(str(right.value)):
            return _equal(left, *str(right.value).replace("\\.", ".").split("|"))
    sides = (one for one in (left, right) if isinstance(one, Field))
    return {need for one in sides for need in field_needs(one)}


def _equal(field: Field, *values: object) -> set[Need]:
    if field.scope != "intrinsic":
        return set() if field.name == a.PLAYHEAD_COST_USD else {keys.equals(field.name, *values)}
    made = _INTRINSICS.get(field.name)
    need = None if made is None else made(values)
    return set() if need is None else {need}


def _either(left: set[Need], right: set[Need]) -> set[Need]:
    """Needs of a disjunction: a key from either side meets a need."""
    return {min(left, key=len) | min(right, key=len)} if left and right else set()


def _named(values: tuple[object, ...]) -> Need:
    return keys.equals(keys.SPAN_NAME, *values)


def _service(values: tuple[object, ...]) -> Need | None:
    return None if NO_SERVICE in values else keys.equals(a.SERVICE_NAME, *values)


def _status(values: tuple[object, ...]) -> Need | None:
    return keys.has(keys.FAILED) if values == (ERROR,) else None


_INTRINSICS: dict[str, Callable[[tuple[object, ...]], Need | None]] = {
    "name": _named,
    "rootName": _named,
    "rootServiceName": _service,
    "status": _status,
}
