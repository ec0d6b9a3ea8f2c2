"""TraceQL metrics: numbers computed from the matching spans for each time step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from playhead_core.errors import UsageError
from playhead_receiver.api.compatibility.reading import Traces
from playhead_receiver.api.compatibility.spans import Seen
from playhead_receiver.api.tempo.arithmetic import NAME, Labels, Points, Series, combined
from playhead_receiver.api.tempo.searching import NAMES, TimeRange, matching
from playhead_receiver.api.tempo.traceql import Calculation, Matcher, Metric, SpanQuery
from playhead_receiver.api.tempo.traceql.matching import ORDER
from playhead_receiver.api.tempo.traceql.tree import Cut, Field, Threshold
from playhead_receiver.api.tempo.traceql.values import Typed

SECOND_NS = 10**9
MOST_SERIES = 1000
STRING, DOUBLE = "stringValue", "doubleValue"
NOTHING = (STRING, "nil")
META = "__meta_type"
TOP = 10
"""Default number of values per attribute that ``compare`` shows."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a series."""

    of: Callable[[Seen], int]
    """The number of the step that a span started in."""
    numbers: range
    width_ns: int = 0
    """0: the window, divided among the steps."""


class Observed(msgspec.Struct):
    """Observed numbers by step, and the last trace that contributed one.

    Steps without numbers are missing.
    """

    values: dict[int, list[float]] = {}
    trace_id: str = ""
    at_ns: int = 0


def query_range(
    traces: Traces,
    query: SpanQuery | Calculation,
    window: TimeRange,
    step_ns: int,
    *,
    exemplars: bool = True,
) -> dict[str, Any]:
    """Tempo's QueryRangeResponse. Steps end at multiples of ``step_ns``, which belong to them."""
    start_ns, end_ns = window.start_ns or 0, window.end_ns or 0
    first, last = start_ns // step_ns, -(-end_ns // step_ns)
    steps = range(first + 1, last + 1)
    shown: list[dict[str, Any]] = []
    for one in _computed(traces, query, window, Steps(lambda span: -(-span.start_ns // step_ns), steps)):
        samples = [
            {"timestampMs": str(step * step_ns // 10**6), "value": value}
            for step, value in sorted(one.points.items())
        ]
        leads = exemplars and one.trace_id and one.points
        shown.append(
            {
                "labels": _label_list(one.labels),
                "samples": samples,
                "exemplars": [_exemplar(one)] if leads else [],
            }
        )
    return {"series": shown, "metrics": {}}


def instant(traces: Traces, query: SpanQuery | Calculation, window: TimeRange) -> dict[str, Any]:
    """Tempo's QueryInstantResponse: one number over the whole window."""
    length = max((window.end_ns or 0) - (window.start_ns or 0), 1)
    found = _computed(traces, query, window, Steps(lambda _: 0, range(1), length))
    return {
        "series": [
            {"labels": _label_list(one.labels), "value": one.points[0]} for one in found if one.points
        ],
        "metrics": {},
    }


def _computed(
    traces: Traces,
    query: SpanQuery | Calculation,
    window: TimeRange,
    steps: Steps,
) -> list[Series]:
    def side(one: SpanQuery | Calculation | float) -> list[Series] | float:
        if isinstance(one, int | float):
            return one
        return _computed(traces, one, window, steps)

    if isinstance(query, Calculation):
        found = combined(query.op, side(query.left), side(query.right))
        found = [one for one in found if one.points]
    else:
        found = _measured(traces, query, window, steps)
    for stage in query.stages:
        if isinstance(stage, Cut):
            found = _cut(found, stage)
        elif isinstance(stage, Threshold):
            found = _beyond(found, stage)
    return found


def _measured(
    traces: Traces,
    query: SpanQuery,
    window: TimeRange,
    steps: Steps,
) -> list[Series]:
    metric = query.metric
    assert metric is not None
    observed: dict[Labels, Observed] = {}
    for matcher, span in _spans(traces, query, window):
        step = steps.of(span)
        for labels, value in _observed(matcher, metric, span):
            one = observed.get(labels)
            if one is None:
                if len(observed) >= MOST_SERIES and metric.function != "compare":
                    raise UsageError(f"more than {MOST_SERIES} series: group by something else")
                one = observed[labels] = Observed({})
            one.values.setdefault(step, []).append(value)
            one.trace_id, one.at_ns = matcher.trace.trace_id.hex(), span.start_ns
    if metric.function == "compare":
        observed = _most(observed, int(metric.numbers[0]) if metric.numbers else TOP)
    if metric.function in ("rate", "count_over_time") and not observed and not metric.by:
        observed[_named(metric)] = Observed({})
    width_ns = steps.width_ns or _width(window, steps.numbers)
    return [
        Series(labels, points, one.trace_id, one.at_ns)
        for key, one in sorted(observed.items())
        for labels, points in _numbers(metric, key, one, steps.numbers, width_ns)
    ]


def _width(window: TimeRange, steps: range) -> int:
    return max(((window.end_ns or 0) - (window.start_ns or 0)) // max(len(steps), 1), 1)


def _spans(traces: Traces, query: SpanQuery, window: TimeRange) -> Iterator[tuple[Matcher, Seen]]:
    start_ns, end_ns = window.start_ns or 0, window.end_ns or 0
    for trace in matching(traces, query, window):
        matcher = Matcher(trace)
        for found in matcher.find(query):
            for span in found.spans:
                if start_ns < span.start_ns <= end_ns:
                    yield matcher, span


def _observed(matcher: Matcher, metric: Metric, span: Seen) -> Iterator[tuple[Labels, float]]:
    """The series to which a span contributes, each with its number."""
    if metric.function == "compare":
        yield from _both_sides(matcher, metric, span)
        return
    labels = tuple((field.text, *_first(matcher, field, span)) for field in metric.by)
    if metric.field is None:
        yield labels or _named(metric), 1.0
        return
    for typed in matcher.evaluate(metric.field, span)[:1]:
        number = _number(typed)
        if number is None:
            return
        if metric.function == "histogram_over_time":
            yield (*labels, ("__bucket", DOUBLE, _bucket(number))), 1.0
        else:
            yield labels if labels else _named(metric), number


def _named(metric: Metric) -> Labels:
    return () if metric.function == "quantile_over_time" else ((NAME, STRING, metric.function),)


def _both_sides(matcher: Matcher, metric: Metric, span: Seen) -> Iterator[tuple[Labels, float]]:
    """All attributes of a span, on the side of the comparison to which the span belongs."""
    condition = metric.selection.condition if metric.selection else None
    first_ns, last_ns = metric.numbers[1:] or (span.start_ns, span.start_ns)
    chosen = first_ns <= span.start_ns <= last_ns
    chosen = chosen and (condition is None or matcher.holds(condition, span))
    side = "selection" if chosen else "baseline"
    of_side, of_total = ((META, STRING, one) for one in (side, f"{side}_total"))
    fields = [Field("intrinsic", name, text=name) for name in ("name", "kind", "status")]
    fields += [Field("span", name, text=f"span.{name}") for name in span.attributes]
    fields += [Field("resource", name, text=f"resource.{name}") for name in span.resource]
    for field in fields:
        yield (of_side, (field.text, *_first(matcher, field, span))), 1.0
        yield (of_total, (field.text, *NOTHING)), 1.0


def _most(series: dict[Labels, Observed], count: int) -> dict[Labels, Observed]:
    """The most frequent values of each attribute on each side."""
    sums: Counter[Labels] = Counter()
    for labels, one in series.items():
        sums[labels] = sum(len(values) for values in one.values.values())
    taken: Counter[tuple[str, str]] = Counter()
    kept: dict[Labels, Observed] = {}
    for labels, _ in sums.most_common():
        place = labels[0][2], labels[1][0]
        taken[place] += 1
        if taken[place] <= count:
            kept[labels] = series[labels]
    return kept


def _numbers(
    metric: Metric, labels: Labels, one: Observed, steps: range, width_ns: int
) -> Iterator[tuple[Labels, Points]]:
    function = metric.function
    if function == "quantile_over_time":
        for quantile in metric.numbers:
            numbers = {step: _quantile(values, quantile) for step, values in one.values.items()}
            yield (*labels, ("p", DOUBLE, format(quantile, "g"))), numbers
        return
    if function in ("rate", "count_over_time", "histogram_over_time", "compare"):
        per = width_ns / SECOND_NS if function == "rate" else 1
        yield labels, {step: len(one.values.get(step, ())) / per for step in steps}
        return
    fold = _FOLDS[function]
    yield labels, {step: fold(values) for step, values in one.values.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_FOLDS: dict[str, Callable[[Sequence[float]], float]] = {
    "min_over_time": min,
    "max_over_time": max,
    "sum_over_time": sum,
    "avg_over_time": _mean,
}


def _quantile(values: Sequence[float], quantile: float) -> float:
    """The quantile, by linear interpolation."""
    ordered = sorted(values)
    at = min(max(quantile, 0.0), 1.0) * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _cut(found: list[Series], cut: Cut) -> list[Series]:
    """The largest or smallest values of each step."""
    sign = -1 if cut.function == "topk" else 1
    kept: list[Points] = [{} for _ in found]
    for step in {step for one in found for step in one.points}:
        order = [at for at, one in enumerate(found) if step in one.points]
        order.sort(key=lambda at: (sign * found[at].points[step], found[at].labels))
        for at in order[: cut.count]:
            kept[at][step] = found[at].points[step]
    return [
        msgspec.structs.replace(one, points=points)
        for one, points in zip(found, kept, strict=True)
        if points
    ]


def _beyond(found: list[Series], threshold: Threshold) -> list[Series]:
    """The values that satisfy the comparison, and the series that have any."""
    limit = _number((threshold.value.kind, threshold.value.value))
    holds = ORDER[threshold.op]
    kept = (
        msgspec.structs.replace(
            one, points={step: value for step, value in one.points.items() if holds(value, limit)}
        )
        for one in found
    )
    return [one for one in kept if one.points]


def _first(matcher: Matcher, field: Field, span: Seen) -> tuple[str, str]:
    """Type and text of the first value."""
    for kind, value in matcher.values.of(field, span)[:1]:
        if kind == "bool":
            return "boolValue", str(value).lower()
        if kind == "number":
            return ("intValue" if isinstance(value, int) else DOUBLE), str(value)
        return STRING, NAMES[kind].get(value, str(value)) if kind in NAMES else str(value)
    return NOTHING


def _number(typed: Typed) -> float | None:
    """The value as a number; durations in metrics are in seconds."""
    kind, value = typed
    if kind == "duration":
        return value / SECOND_NS
    return float(value) if kind == "number" else None


def _bucket(number: float) -> str:
    """The smallest power of two that is not less than the number."""
    if number <= 0:
        return "0"
    return format(2.0 ** math.ceil(math.log2(number)), "g")


def _label_list(labels: Labels) -> list[dict[str, Any]]:
    read: dict[str, Callable[[str], Any]] = {DOUBLE: float, "boolValue": "true".__eq__}
    return [{"key": key, "value": {form: read.get(form, str)(text)}} for key, form, text in labels]


def _exemplar(one: Series) -> dict[str, Any]:
    return {
        "labels": [{"key": "trace:id", "value": {"stringValue": one.trace_id}}],
        "value": max(one.points.values()),
        "timestampMs": str(one.at_ns // 10**6),
    }
