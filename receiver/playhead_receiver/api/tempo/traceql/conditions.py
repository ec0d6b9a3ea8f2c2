"""Parses conditions on a span, beginning with the operators of lowest precedence."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any

import re2

from playhead_core.errors import UsageError
from playhead_receiver.api.compatibility.times import duration_ns
from playhead_receiver.api.tempo.traceql.tree import Binary, Expression, Field, Literal_, Unary
from playhead_receiver.api.tempo.traceql.words import (
    COMPARISONS,
    INTRINSICS,
    KINDS,
    SCOPED,
    SCOPES,
    STATUSES,
    Lexeme,
    tokens,
)

DEEPEST = 100
ARITHMETIC = ("+", "-", "*", "/")
"""Operators that combine numbers and metrics."""


class Conditions:
    """A recursive-descent parser of conditions; each grammar rule is a method."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._depth = 0

    # Access to the tokens

    @property
    def _next(self) -> Lexeme:
        return self._tokens[self._at]

    def _take(self) -> Lexeme:
        found = self._next
        if found.kind != "end":
            self._at += 1
        return found

    def _is(self, *texts: str) -> bool:
        return self._next.kind in ("op", "word") and self._next.text in texts

    def _accept(self, *texts: str) -> bool:
        if self._is(*texts):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._wrong(f"expected {text}")

    def _wrong(self, what: str) -> UsageError:
        found = self._next
        near = "the end" if found.kind == "end" else repr(found.text)
        return UsageError(f"invalid TraceQL query: {what} at {found.at}, found {near}")

    # Grammar of conditions

    def _either(self) -> Expression:
        self._go_down()
        try:
            left = self._and()
            while self._accept("||"):
                left = Binary("||", left, self._and())
            return left
        finally:
            self._depth -= 1

    def _and(self) -> Expression:
        left = self._comparison()
        while self._accept("&&"):
            left = Binary("&&", left, self._comparison())
        return left

    def _comparison(self) -> Expression:
        left = self._sum()
        if self._is(*COMPARISONS):
            op = self._take().text
            right = self._sum()
            if op in ("=~", "!~"):
                _check_pattern(right)
            return Binary(op, left, right)
        return left

    def _sum(self) -> Expression:
        left = self._product()
        while self._is("+", "-"):
            op = self._take().text
            left = Binary(op, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._power()
        while self._is("*", "/", "%"):
            op = self._take().text
            left = Binary(op, left, self._power())
        return left

    def _power(self) -> Expression:
        left = self._unary()
        return Binary("^", left, self._power()) if self._accept("^") else left

    def _unary(self) -> Expression:
        if self._is("!", "-"):
            self._go_down()
            op = self._take().text
            operand = self._unary()
            self._depth -= 1
            if op == "-" and isinstance(operand, Literal_) and operand.kind in ("number", "duration"):
                return Literal_(-operand.value, operand.kind)
            return Unary(op, operand)
        return self._primary()

    def _primary(self) -> Expression:
        token = self._take()
        text = token.text
        if token.kind == "op" and text == "(":
            found = self._either()
            self._expect(")")
            return found
        if token.kind == "string":
            return Literal_(_unquoted(text), "string")
        if token.kind == "duration":
            return Literal_(duration_ns(text), "duration")
        if token.kind == "number":
            return Literal_(float(text) if not text.isdecimal() else int(text), "number")
        if token.kind == "field":
            return _field(text)
        if token.kind == "scoped" and text in SCOPED:
            return Field("intrinsic", SCOPED[text], text=text)
        if token.kind == "word":
            found = _word(text)
            if found is not None:
                return found
        self._at -= token.kind != "end"
        raise self._wrong("expected a value or an attribute")

    def _go_down(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise UsageError("invalid TraceQL query: it is nested too deeply")

    def _constant(self) -> Literal_:
        """A number or a duration; a number may be an arithmetic expression."""
        return self._worked_out(self._sum())

    def _worked_out(self, node: Expression) -> Literal_:
        if isinstance(node, Literal_) and node.kind in ("number", "duration"):
            return node
        if isinstance(node, Binary) and node.op in ARITHMETIC:
            left, right = self._worked_out(node.left), self._worked_out(node.right)
            if left.kind == right.kind == "number":
                return Literal_(calculated(node.op, left.value, right.value), "number")
        raise self._wrong("expected a number")


def field_of(text: str) -> Field:
    """A single attribute or intrinsic, as ``span.name``. `UsageError`."""
    found = None
    word = tokens(text)[0]
    if word.text == text:
        if word.kind == "field":
            return _field(text)
        if text in SCOPED:
            return Field("intrinsic", SCOPED[text], text=text)
        found = _word(text)
    if isinstance(found, Field):
        return found
    raise UsageError(f"{text!r} is no attribute")


def _word(text: str) -> Expression | None:
    if text in ("true", "false"):
        return Literal_(text == "true", "bool")
    if text == "nil":
        return Literal_(None, "nil")
    if text in STATUSES:
        return Literal_(STATUSES[text], "status")
    if text in KINDS:
        return Literal_(KINDS[text], "kind")
    return Field("intrinsic", text, text=text) if text in INTRINSICS else None


def _field(text: str) -> Field:
    name = text.removeprefix("parent.")
    scope = next((one for one in SCOPES if name.startswith(f"{one}.")), "")
    name = name.removeprefix(f"{scope}.")
    name = re.sub(r'"(?:[^"\\]|\\.)*"', lambda one: _unquoted(one[0]), name)
    return Field(scope, name, text.startswith("parent."), text)


def _unquoted(text: str) -> str:
    if text.startswith("`"):
        return text[1:-1]
    try:
        return json.loads(text, strict=False)
    except ValueError:
        return re.sub(r"\\(.)", r"\1", text[1:-1])


def _check_pattern(pattern: Expression) -> None:
    if not isinstance(pattern, Literal_) or pattern.kind != "string":
        raise UsageError("invalid TraceQL query: =~ and !~ want a pattern in quotes")
    pattern_of(pattern.value)


def calculated(op: str, left: float, right: float) -> float:
    """The result of an operation on two constants; integers use integer division. `UsageError`."""
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            if right == 0:
                raise UsageError("invalid TraceQL query: a division by zero")
            whole = isinstance(left, int) and isinstance(right, int)
            return math.trunc(left / right) if whole else left / right


_OPTIONS: Any = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=256)
def pattern_of(text: str) -> Any:
    """A compiled pattern. `UsageError` if it is not valid."""
    try:
        return re2.compile(text, _OPTIONS)
    except re2.error:
        raise UsageError(f"invalid TraceQL query: {text!r} is no pattern of RE2") from None


def matches(text: str, pattern: str) -> bool:
    """Whether the whole of ``text`` matches."""
    return pattern_of(pattern).fullmatch(text) is not None
