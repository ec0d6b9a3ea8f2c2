"""The parser of TraceQL: spansets, stages, and arithmetic of metrics."""

from __future__ import annotations

from typing import Any

import msgspec

from playhead_core.errors import UsageError
from playhead_receiver.api.tempo.traceql.checking import check_condition, check_number
from playhead_receiver.api.tempo.traceql.conditions import Conditions, calculated
from playhead_receiver.api.tempo.traceql.tree import (
    Aggregate,
    Calculation,
    Coalesce,
    Combined,
    Cut,
    Expression,
    Field,
    Filter,
    GroupBy,
    Literal_,
    Metric,
    Piped,
    Select,
    SpanQuery,
    Spans,
    Stage,
    Threshold,
    Where,
)
from playhead_receiver.api.tempo.traceql.words import (
    AGGREGATES,
    METRICS,
    MOST_CHARS,
    STRUCTURAL,
    THRESHOLDS,
)


def parse(text: str) -> SpanQuery:
    """Parse a query. `UsageError` with the position of the error.

    >>> parse('{ span.http.status_code >= 400 } | select(name)').stages
    (Select(fields=(Field(scope='intrinsic', name='name', of_parent=False, text='name'),)),)
    """
    found = parse_metric(text)
    if isinstance(found, Calculation):
        raise UsageError("invalid TraceQL query: arithmetic of metrics finds no spans")
    return found


def parse_metric(text: str) -> SpanQuery | Calculation:
    """Parse a query that may be arithmetic of metrics. `UsageError` with the position of the error.

    >>> parse_metric('({ status = error } | rate()) / ({} | rate()) * 100').op
    '*'
    """
    if len(text) > MOST_CHARS:
        raise UsageError(f"the query has more than {MOST_CHARS} characters")
    return _Parser(text).query()


class _Parser(Conditions):
    def query(self) -> SpanQuery | Calculation:
        found = self._calculation() if self._is_calculation() else self._plain()
        hints = self._hints() if self._accept("with") else {}
        if self._next.kind != "end":
            raise self._wrong("expected | or the end")
        return msgspec.structs.replace(found, hints=hints)

    def _plain(self) -> SpanQuery:
        spans, stages = self._pipeline()
        return SpanQuery(spans, tuple(stages))

    def _pipeline(self) -> tuple[Spans, list[Stage]]:
        # A query may begin with a stage, which then applies to all spans.
        bare = self._next.kind == "word"
        spans = Filter(None) if bare else self._spans()
        stages = [self._stage()] if bare else list[Stage]()
        self._go_on(stages)
        metrics = [at for at, one in enumerate(stages) if isinstance(one, Metric)]
        after = stages[metrics[0] + 1 :] if metrics else stages
        if metrics and not all(isinstance(one, Cut | Threshold) for one in after):
            raise UsageError("invalid TraceQL query: only topk, bottomk and comparisons follow a metric")
        if after and metrics and _compares(stages[metrics[0]]):
            raise UsageError("invalid TraceQL query: nothing follows compare")
        if not metrics and any(isinstance(one, Cut) for one in stages):
            raise UsageError("invalid TraceQL query: topk and bottomk follow a metric")
        return spans, stages

    def _go_on(self, stages: list[Stage]) -> None:
        """Parse the stages that follow; comparisons are allowed only after metrics."""
        while True:
            after_metric = bool(stages) and isinstance(stages[-1], Metric | Cut | Threshold)
            if after_metric and self._is(*THRESHOLDS):
                op = self._take().text
                stages.append(Threshold(op, self._constant()))
            elif self._accept("|"):
                stages.append(self._stage())
            else:
                return

    # Arithmetic of metrics

    def _is_calculation(self) -> bool:
        """Whether the query begins with a metric in parentheses or with a number."""
        if self._next.kind in ("number", "duration") or self._is("-"):
            return True
        depth = 0
        for token in self._tokens:
            depth += (token.text == "(") - (token.text == ")")
            if depth and token.kind == "word" and token.text in METRICS:
                return True
        return False

    def _calculation(self) -> SpanQuery | Calculation:
        found = self._added()
        if not isinstance(found, SpanQuery | Calculation):
            raise self._wrong("a metric is wanted, such as ({} | rate())")
        stages: list[Stage] = []
        while self._is("|", *THRESHOLDS):
            if self._accept("|"):
                stages.append(self._stage())
            else:
                op = self._take().text
                stages.append(Threshold(op, self._constant()))
        if not all(isinstance(one, Cut | Threshold) for one in stages):
            raise UsageError("invalid TraceQL query: only topk, bottomk and comparisons follow a metric")
        if stages and isinstance(found, SpanQuery) and _compares(found.metric):
            raise UsageError("invalid TraceQL query: nothing follows compare")
        return msgspec.structs.replace(found, stages=(*found.stages, *stages))

    def _added(self) -> SpanQuery | Calculation | float:
        left = self._multiplied()
        while self._is("+", "-"):
            op = self._take().text
            left = _combined(op, left, self._multiplied())
        return left

    def _multiplied(self) -> SpanQuery | Calculation | float:
        left = self._operand()
        while self._is("*", "/"):
            op = self._take().text
            left = _combined(op, left, self._operand())
        return left

    def _operand(self) -> SpanQuery | Calculation | float:
        self._go_down()
        try:
            if not self._is("("):
                return self._number()
            piped = self._is_pipeline()
            self._expect("(")
            found = self._plain() if piped else self._added()
            self._expect(")")
            return found
        finally:
            self._depth -= 1

    def _is_pipeline(self) -> bool:
        """Whether the next parenthesis encloses a single metric."""
        depth = 0
        for token in self._tokens[self._at :]:
            depth += (token.text == "(") - (token.text == ")")
            if depth <= 1 and token.kind == "word" and token.text in METRICS:
                return True
            if not depth:
                return False
        return False

    # Spansets and stages

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
            if not self._accept("("):
                return self._filter()
            spans, stages = self._pipeline()
            if any(isinstance(one, Metric) for one in stages):
                raise self._wrong("a metric is no set of spans")
            self._expect(")")
            return Piped(spans, tuple(stages)) if stages else spans
        finally:
            self._depth -= 1

    def _filter(self) -> Filter:
        self._expect("{")
        if self._accept("}"):
            return Filter(None)
        condition = self._either()
        self._expect("}")
        check_condition(condition)
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
        if field is not None:
            check_number(field)
        if not self._is(*THRESHOLDS):
            raise self._wrong("expected a comparison")
        return Aggregate(name, field, self._take().text, self._constant())

    def _metric(self, name: str) -> Metric:
        field: Expression | None = None
        selection: Filter | None = None
        numbers: list[float] = []
        if name == "compare":
            selection = self._filter()
        elif name not in ("rate", "count_over_time"):
            field = self._either()
            check_number(field)
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

    def _number(self) -> float:
        value = self._unary()
        if not isinstance(value, Literal_) or value.kind != "number":
            raise self._wrong("expected a number")
        return value.value


def _combined(
    op: str, left: SpanQuery | Calculation | float, right: SpanQuery | Calculation | float
) -> SpanQuery | Calculation | float:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return calculated(op, left, right)
    if any(isinstance(one, SpanQuery) and _compares(one.metric) for one in (left, right)):
        raise UsageError("invalid TraceQL query: compare is not a number")
    return Calculation(op, left, right)


def _compares(stage: Stage | None) -> bool:
    return isinstance(stage, Metric) and stage.function == "compare"
