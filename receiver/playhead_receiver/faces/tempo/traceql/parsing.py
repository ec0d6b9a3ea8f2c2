"""The parser of TraceQL: by hand, each rule a method, loosest operators first."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from playhead_receiver.faces.tempo.traceql.patterns import pattern_of
from playhead_receiver.faces.tempo.traceql.tree import (
    Aggregate,
    Binary,
    Coalesce,
    Combined,
    Cut,
    Expression,
    Field,
    Filter,
    GroupBy,
    Literal_,
    Metric,
    Query,
    Select,
    Spans,
    Stage,
    Threshold,
    Unary,
    Where,
)
from playhead_receiver.faces.times import PART, duration_ns
from playhead_semconv.errors import UsageError

MOST_CHARS = 10_000
DEEPEST = 100

STATUSES = {"unset": 0, "ok": 1, "error": 2}
KINDS = {"unspecified": 0, "internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
INTRINSICS = frozenset(
    (
        "name",
        "kind",
        "status",
        "statusMessage",
        "duration",
        "traceDuration",
        "rootName",
        "rootServiceName",
        "nestedSetParent",
        "nestedSetLeft",
        "nestedSetRight",
        "childCount",
        "parent",
    )
)
SCOPED = {
    "span:id": "spanID",
    "span:parentID": "parentID",
    "span:name": "name",
    "span:kind": "kind",
    "span:status": "status",
    "span:statusMessage": "statusMessage",
    "span:duration": "duration",
    "span:childCount": "childCount",
    "trace:id": "traceID",
    "trace:duration": "traceDuration",
    "trace:rootName": "rootName",
    "trace:rootService": "rootServiceName",
    "event:name": "eventName",
    "event:timeSinceStart": "eventTimeSinceStart",
    "link:spanID": "linkSpanID",
    "link:traceID": "linkTraceID",
    "instrumentation:name": "instrumentationName",
    "instrumentation:version": "instrumentationVersion",
}
SCOPES = ("span", "resource", "event", "link", "instrumentation")
AGGREGATES = frozenset(("count", "avg", "min", "max", "sum"))
METRICS = frozenset(
    (
        "rate",
        "count_over_time",
        "min_over_time",
        "max_over_time",
        "avg_over_time",
        "sum_over_time",
        "histogram_over_time",
        "quantile_over_time",
        "compare",
    )
)
THRESHOLDS = ("=", "!=", ">", ">=", "<", "<=")
COMPARISONS = (*THRESHOLDS, "=~", "!~")
STRUCTURAL = frozenset(
    (">", ">>", "<", "<<", "~", "!>", "!>>", "!<", "!<<", "!~", "&>", "&>>", "&<", "&<<", "&~")
)

_KEY = r"""(?:"(?:[^"\\]|\\.)*"|[^\s{}()=~!<>&|^,"`])+"""
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*"|`[^`]*`)
    |(?P<field>(?:parent\.(?:(?:{"|".join(SCOPES)})\.)?|(?:{"|".join(SCOPES)})\.|\.){_KEY})
    |(?P<scoped>(?:span|trace|event|link|instrumentation):[A-Za-z]+)
    |(?P<duration>(?:{PART})+(?![\w.]))
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<word>[A-Za-z_][A-Za-z_0-9]*)
    |(?P<op>&>>|&<<|!>>|!<<|&>|&<|&~|!>|!<|!~|!=|>=|<=|=~|&&|\|\||>>|<<|[><~=|(){{}},+\-*/%^!])
    )""",
    re.VERBOSE,
)


class Token(msgspec.Struct, frozen=True):
    """A word of a query."""

    kind: str
    text: str
    at: int


def parse(text: str) -> Query:
    """Read a query. `UsageError` says where it is wrong.

    >>> parse('{ span.http.status_code >= 400 } | select(name)').stages
    (Select(fields=(Field(scope='intrinsic', name='name', of_parent=False, text='name'),)),)
    """
    if len(text) > MOST_CHARS:
        raise UsageError(f"the query has more than {MOST_CHARS} characters")
    return _Parser(text).query()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    # What stands where

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
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

    # Sets of spans and what is done with them

    def query(self) -> Query:
        # A query may begin with a stage: then it is about all spans.
        bare = self._next.kind == "word"
        spans = Filter(None) if bare else self._spans()
        stages = [self._stage()] if bare else list[Stage]()
        while True:
            if stages and isinstance(stages[-1], Metric | Cut) and self._is(*THRESHOLDS):
                op = self._take().text
                stages.append(Threshold(op, self._value()))
            if not self._accept("|"):
                break
            stages.append(self._stage())
        hints = self._hints() if self._accept("with") else {}
        if self._next.kind != "end":
            raise self._wrong("expected | or the end")
        metrics = [at for at, one in enumerate(stages) if isinstance(one, Metric)]
        if len(metrics) > 1 or any(
            not isinstance(one, Cut | Threshold) for one in (stages[metrics[0] + 1 :] if metrics else ())
        ):
            raise UsageError("invalid TraceQL query: only topk, bottomk and comparisons follow a metric")
        if not metrics and any(isinstance(one, Cut) for one in stages):
            raise UsageError("invalid TraceQL query: topk and bottomk follow a metric")
        return Query(spans, tuple(stages), hints)

    def _spans(self) -> Spans:
        left = self._both()
        while self._accept("||"):
            left = Combined("||", left, self._both())
        return left

    def _both(self) -> Spans:
        left = self._related()
        while self._accept("&&"):
            left = Combined("&&", left, self._related())
        return left

    def _related(self) -> Spans:
        left = self._set()
        while self._is(*STRUCTURAL):
            op = self._take().text
            left = Combined(op, left, self._set())
        return left

    def _set(self) -> Spans:
        self._go_down()
        try:
            if self._accept("("):
                found = self._spans()
                self._expect(")")
                return found
            return self._filter()
        finally:
            self._depth -= 1

    def _filter(self) -> Filter:
        self._expect("{")
        if self._accept("}"):
            return Filter(None)
        condition = self._either()
        self._expect("}")
        return Filter(condition)

    def _stage(self) -> Stage:
        if self._is("{", "("):
            return Where(self._spans())
        word = self._take()
        if word.kind != "word":
            self._at -= word.kind != "end"
            raise self._wrong("expected a function")
        name = word.text
        self._expect("(")
        if name == "select":
            return Select(self._list())
        if name == "by":
            field = self._either()
            self._expect(")")
            return GroupBy(field)
        if name == "coalesce":
            self._expect(")")
            return Coalesce()
        if name in ("topk", "bottomk"):
            count = self._number()
            if not isinstance(count, int) or count < 1:
                raise self._wrong(f"{name} wants a whole number above 0")
            self._expect(")")
            return Cut(name, count)
        if name in METRICS:
            return self._metric(name)
        if name in AGGREGATES:
            return self._aggregate(name)
        self._at -= 2
        raise self._wrong("there is no such function")

    def _aggregate(self, name: str) -> Aggregate:
        field = None if name == "count" else self._either()
        self._expect(")")
        if not self._is(*COMPARISONS):
            raise self._wrong("expected a comparison")
        return Aggregate(name, field, self._take().text, self._value())

    def _metric(self, name: str) -> Metric:
        field: Expression | None = None
        selection: Filter | None = None
        numbers: list[float] = []
        if name == "compare":
            selection = self._filter()
        elif name not in ("rate", "count_over_time"):
            field = self._either()
        while self._accept(","):
            numbers.append(self._number())
        self._expect(")")
        by: tuple[Field, ...] = ()
        if self._accept("by"):
            self._expect("(")
            by = self._list()
        if name == "quantile_over_time" and not numbers:
            raise self._wrong("quantile_over_time wants quantiles")
        if name == "compare" and len(numbers) not in (0, 1, 3):
            raise self._wrong("compare wants a filter, how many values, and the begin and end of a time")
        return Metric(name, field, tuple(numbers), by, selection)

    def _list(self) -> tuple[Field, ...]:
        found: list[Field] = []
        while True:
            field = self._primary()
            if not isinstance(field, Field):
                raise self._wrong("expected an attribute")
            found.append(field)
            if not self._accept(","):
                self._expect(")")
                return tuple(found)

    def _hints(self) -> dict[str, Any]:
        self._expect("(")
        found: dict[str, Any] = {}
        while True:
            name = self._take()
            self._expect("=")
            value = self._primary()
            if name.kind != "word" or not isinstance(value, Literal_):
                raise self._wrong("expected name=value")
            found[name.text] = value.value
            if not self._accept(","):
                self._expect(")")
                return found

    def _value(self) -> Literal_:
        value = self._unary()
        if not isinstance(value, Literal_) or value.kind not in ("number", "duration"):
            raise self._wrong("expected a number")
        return value

    def _number(self) -> float:
        return self._value().value

    # Conditions

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


def field_of(text: str) -> Field:
    """An attribute or intrinsic by itself, as ``span.name``. `UsageError`."""
    found = None
    token = _TOKEN.match(text)
    if token is not None and token.end() == len(text):
        if token["field"]:
            return _field(text)
        if token["scoped"] in SCOPED:
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


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            raise UsageError(f"invalid TraceQL query: {text[at:].strip()[:20]!r} at {at} means nothing")
        found.append(Token(token.lastgroup, token[token.lastgroup], token.start(token.lastgroup)))
        at = token.end()
    found.append(Token("end", "", len(text)))
    return found
