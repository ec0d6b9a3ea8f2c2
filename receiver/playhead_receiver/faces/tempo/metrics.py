"""TraceQL metrics: numbers of the spans that a query finds, for each step of time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from playhead_receiver.faces.reading import Traces
from playhead_receiver.faces.spans import Seen
from playhead_receiver.faces.tempo.searching import NAMES, Window, matching
from playhead_receiver.faces.tempo.traceql import Matcher, Metric, Query
from playhead_receiver.faces.tempo.traceql.matching import ORDER
from playhead_receiver.faces.tempo.traceql.tree import Cut, Field, Threshold
from playhead_receiver.faces.tempo.traceql.values import Typed
from playhead_semconv.errors import UsageError

SECOND_NS = 10**9
MOST_SERIES = 1000
TOP = 10
"""Values of an attribute that ``compare`` shows, where nobody says how many."""

Labels = tuple[tuple[str, str], ...]
"""Names and values."""


class Series(msgspec.Struct):
    """Values by step; a step without any has no entry. The last trace that gave one."""

    values: dict[int, list[float]] = {}
    trace_id: str = ""
    at_ns: int = 0


def query_range(traces: Traces, query: Query, window: Window, step_ns: int) -> dict[str, Any]:
    """Tempo's QueryRangeResponse. The steps are whole multiples of ``step_ns``."""
    start_ns, end_ns = window.start_ns or 0, window.end_ns or 0
    first, last = start_ns // step_ns, -(-end_ns // step_ns)
    found = _computed(traces, query, window, lambda span: span.start_ns // step_ns, range(first, last))
    shown: list[dict[str, Any]] = []
    for labels, numbers, series in found:
        samples = [
            {"timestampMs": str(step * step_ns // 10**6), "value": value}
            for step, value in sorted(numbers.items())
        ]
        exemplars = [_exemplar(series, max(numbers.values()))] if series.trace_id and numbers else []
        shown.append(
            {
                "labels": _label_list(labels),
                "samples": samples,
                "exemplars": exemplars,
            }
        )
    return {"series": shown, "metrics": {}}


def instant(traces: Traces, query: Query, window: Window) -> dict[str, Any]:
    """Tempo's QueryInstantResponse: one number over the whole window."""
    length = max((window.end_ns or 0) - (window.start_ns or 0), 1)
    found = _computed(traces, query, window, lambda _: 0, range(1), length)
    return {
        "series": [
            {"labels": _label_list(labels), "value": numbers[0]}
            for labels, numbers, _ in found
            if numbers
        ],
        "metrics": {},
    }


def _computed(
    traces: Traces,
    query: Query,
    window: Window,
    step_of: Callable[[Seen], int],
    steps: range,
    step_ns: int = 0,
) -> list[tuple[Labels, dict[int, float], Series]]:
    metric = query.metric
    assert metric is not None
    series: dict[Labels, Series] = {}
    for matcher, span in _spans(traces, query, window):
        step = step_of(span)
        for labels, value in _observed(matcher, metric, span):
            one = series.get(labels)
            if one is None:
                if len(series) >= MOST_SERIES and metric.function != "compare":
                    raise UsageError(f"more than {MOST_SERIES} series: group by something else")
                one = series[labels] = Series({})
            one.values.setdefault(step, []).append(value)
            one.trace_id, one.at_ns = matcher.trace.trace_id.hex(), span.start_ns
    if metric.function == "compare":
        series = _most(series, int(metric.numbers[0]) if metric.numbers else TOP)
    if metric.function in ("rate", "count_over_time") and not series and not metric.by:
        series[_named(metric)] = Series({})
    width_ns = step_ns or _width(window, steps)
    found = [
        (labels, numbers, one)
        for key, one in sorted(series.items())
        for labels, numbers in _numbers(metric, key, one, steps, width_ns)
    ]
    for stage in query.stages:
        if isinstance(stage, Cut):
            found = _cut(found, stage)
        elif isinstance(stage, Threshold):
            found = _beyond(found, stage)
    return found


def _width(window: Window, steps: range) -> int:
    return max(((window.end_ns or 0) - (window.start_ns or 0)) // max(len(steps), 1), 1)


def _spans(traces: Traces, query: Query, window: Window) -> Iterator[tuple[Matcher, Seen]]:
    start_ns, end_ns = window.start_ns or 0, window.end_ns or 0
    for trace in matching(traces, query, window):
        matcher = Matcher(trace)
        for found in matcher.find(query):
            for span in found.spans:
                if start_ns <= span.start_ns < end_ns:
                    yield matcher, span


def _observed(matcher: Matcher, metric: Metric, span: Seen) -> Iterator[tuple[Labels, float]]:
    """The series that a span counts in, and its number there."""
    if metric.function == "compare":
        yield from _both_sides(matcher, metric, span)
        return
    labels = tuple((field.text, _first(matcher, field, span)) for field in metric.by)
    if metric.field is None:
        yield labels or _named(metric), 1.0
        return
    for typed in matcher.evaluate(metric.field, span)[:1]:
        number = _number(typed)
        if number is None:
            return
        if metric.function == "histogram_over_time":
            yield (*labels, ("__bucket", _bucket(number))), 1.0
        else:
            yield labels if labels else _named(metric), number


def _named(metric: Metric) -> Labels:
    return () if metric.function == "quantile_over_time" else (("__name__", metric.function),)


def _both_sides(matcher: Matcher, metric: Metric, span: Seen) -> Iterator[tuple[Labels, float]]:
    """Every attribute of a span, on the side on which the span is."""
    condition = metric.selection.condition if metric.selection else None
    first_ns, last_ns = metric.numbers[1:] or (span.start_ns, span.start_ns)
    chosen = first_ns <= span.start_ns <= last_ns
    chosen = chosen and (condition is None or matcher.holds(condition, span))
    side = ("__meta_type", "selection" if chosen else "baseline")
    fields = [Field("intrinsic", name, text=name) for name in ("name", "kind", "status")]
    fields += [Field("span", name, text=f"span.{name}") for name in span.attributes]
    fields += [Field("resource", name, text=f"resource.{name}") for name in span.resource]
    for field in fields:
        yield (side, (field.text, _first(matcher, field, span))), 1.0
        yield (("__meta_type", f"{side[1]}_total"), (field.text, "nil")), 1.0


def _most(series: dict[Labels, Series], count: int) -> dict[Labels, Series]:
    """Of each attribute on each side, the values that are most frequent."""
    sums: Counter[Labels] = Counter()
    for labels, one in series.items():
        sums[labels] = sum(len(values) for values in one.values.values())
    taken: Counter[tuple[str, str]] = Counter()
    kept: dict[Labels, Series] = {}
    for labels, _ in sums.most_common():
        place = labels[0][1], labels[1][0]
        taken[place] += 1
        if taken[place] <= count:
            kept[labels] = series[labels]
    return kept


def _numbers(
    metric: Metric, labels: Labels, one: Series, steps: range, width_ns: int
) -> Iterator[tuple[Labels, dict[int, float]]]:
    function = metric.function
    if function == "quantile_over_time":
        for quantile in metric.numbers:
            numbers = {step: _quantile(values, quantile) for step, values in one.values.items()}
            yield (*labels, ("p", format(quantile, "g"))), numbers
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
    """Linear between the two nearest."""
    ordered = sorted(values)
    at = min(max(quantile, 0.0), 1.0) * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _cut(
    found: list[tuple[Labels, dict[int, float], Series]], cut: Cut
) -> list[tuple[Labels, dict[int, float], Series]]:
    """Of each step, the greatest or least."""
    sign = -1 if cut.function == "topk" else 1
    kept: list[dict[int, float]] = [{} for _ in found]
    for step in {step for _, numbers, _ in found for step in numbers}:
        order = [at for at, (_, numbers, _) in enumerate(found) if step in numbers]
        order.sort(key=lambda at: (sign * found[at][1][step], found[at][0]))
        for at in order[: cut.count]:
            kept[at][step] = found[at][1][step]
    return [
        (labels, numbers, one) for (labels, _, one), numbers in zip(found, kept, strict=True) if numbers
    ]


def _beyond(
    found: list[tuple[Labels, dict[int, float], Series]], threshold: Threshold
) -> list[tuple[Labels, dict[int, float], Series]]:
    """The values that are so, and the series that have any."""
    limit = _number((threshold.value.kind, threshold.value.value))
    holds = ORDER[threshold.op]
    kept = (
        (labels, {step: value for step, value in numbers.items() if holds(value, limit)}, one)
        for labels, numbers, one in found
    )
    return [one for one in kept if one[1]]


def _first(matcher: Matcher, field: Field, span: Seen) -> str:
    for kind, value in matcher.values.of(field, span)[:1]:
        if kind in NAMES:
            return NAMES[kind].get(value, str(value))
        return str(value).lower() if kind == "bool" else str(value)
    return "nil"


def _number(typed: Typed) -> float | None:
    """Durations are seconds in metrics."""
    kind, value = typed
    if kind == "duration":
        return value / SECOND_NS
    return float(value) if kind == "number" else None


def _bucket(number: float) -> str:
    """The power of two at or above it."""
    if number <= 0:
        return "0"
    return format(2.0 ** math.ceil(math.log2(number)), "g")


def _label_list(labels: Labels) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "value": {"doubleValue": float(value)} if key == "__bucket" else {"stringValue": value},
        }
        for key, value in labels
    ]


def _exemplar(series: Series, value: float) -> dict[str, Any]:
    return {
        "labels": [{"key": "trace:id", "value": {"stringValue": series.trace_id}}],
        "value": value,
        "timestampMs": str(series.at_ns // 10**6),
    }
