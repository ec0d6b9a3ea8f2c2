"""Rejects conditions that no span can satisfy, when a query is parsed, as ``status = "error"``."""

from __future__ import annotations

from playhead_core.errors import UsageError
from playhead_receiver.api.tempo.traceql.tree import Expression, Field, Kind, Literal_, Unary
from playhead_receiver.api.tempo.traceql.words import COMPARISONS, KINDS, STATUSES

_OF_INTRINSICS: dict[str, Kind] = {
    "status": "status",
    "kind": "kind",
    "duration": "duration",
    "traceDuration": "duration",
    "eventTimeSinceStart": "duration",
    "childCount": "number",
    "nestedSetParent": "number",
    "nestedSetLeft": "number",
    "nestedSetRight": "number",
}
"""Kinds of intrinsic fields; all others are text."""
_CALLED: dict[Kind, str] = {
    "string": "text",
    "number": "a number",
    "duration": "a duration",
    "bool": "true or false",
    "status": "a status",
    "kind": "a kind",
    "nil": "nil",
}
_WORDS = {"status": STATUSES, "kind": KINDS}


def check_condition(node: Expression) -> None:
    """`UsageError` unless it can be true for a span."""
    kind = _kind_of(node)
    if kind not in (None, "bool"):
        raise _wrong(f"{_shown(node)} is {_CALLED[kind]}, no condition")


def check_number(node: Expression) -> None:
    """`UsageError` unless it can be a number."""
    kind = _kind_of(node)
    if kind not in (None, "number", "duration"):
        raise _wrong(f"{_shown(node)} is {_CALLED[kind]}, no number")


def _kind_of(node: Expression) -> Kind | None:
    """None: depends on the span, as with an attribute."""
    if isinstance(node, Literal_):
        return node.kind
    if isinstance(node, Field):
        return _OF_INTRINSICS.get(node.name, "string") if node.scope == "intrinsic" else None
    if isinstance(node, Unary):
        kind = _kind_of(node.operand)
        fit = ("bool",) if node.op == "!" else ("number", "duration")
        if kind is not None and kind not in fit:
            raise _wrong(f"{node.op} before {_shown(node.operand)}, which is {_CALLED[kind]}")
        return "bool" if node.op == "!" else kind
    if node.op in ("&&", "||"):
        check_condition(node.left)
        check_condition(node.right)
        return "bool"
    left, right = _kind_of(node.left), _kind_of(node.right)
    if node.op not in COMPARISONS:
        check_number(node.left)
        check_number(node.right)
        return "duration" if "duration" in (left, right) else "number"
    if left is None or right is None or "nil" in (left, right):
        return "bool"
    said = f"{_shown(node.left)} {node.op} {_shown(node.right)}"
    if left != right and not {left, right} <= {"number", "duration"}:
        hint = ", leave the quotes out" if _is_quoted_word(node.right, left) else ""
        raise _wrong(f"{said} compares {_CALLED[left]} with {_CALLED[right]}{hint}")
    if node.op in ("=~", "!~") and left != "string":
        raise _wrong(f"{said}: only text matches a pattern")
    if node.op not in ("=", "!=") and left in ("status", "kind", "bool"):
        raise _wrong(f"{said}: {_CALLED[left]} has no order")
    return "bool"


def _is_quoted_word(node: Expression, kind: Kind) -> bool:
    return isinstance(node, Literal_) and node.value in _WORDS.get(kind, ())


def _shown(node: Expression) -> str:
    if isinstance(node, Field):
        return node.text
    if not isinstance(node, Literal_):
        return "what is worked out"
    if node.kind in _WORDS:
        return next(word for word, number in _WORDS[node.kind].items() if number == node.value)
    if node.kind == "string":
        return f'"{node.value}"'
    return f"{node.value}ns" if node.kind == "duration" else str(node.value).lower()


def _wrong(what: str) -> UsageError:
    return UsageError(f"invalid TraceQL query: {what}")
