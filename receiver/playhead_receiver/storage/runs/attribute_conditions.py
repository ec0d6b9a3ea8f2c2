"""Decides whether spans and log records of a run meet conditions on attributes, scores and levels."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

import msgspec

from playhead_core.otlp import attributes_of
from playhead_core.otlp.log_records import LEVELS, LogQuery, level_name, log_line
from playhead_genai.other_conventions import attributes_in_our_words
from playhead_genai.run_fields import METADATA, METADATA_OBJECTS, decoded, names_of
from playhead_genai.scores import FIELD, score_of, scores_in
from playhead_receiver.storage.runs.attribute_keys import LEVEL, equals, has, name_key
from playhead_receiver.storage.values.run_summaries import (
    AttributeCondition,
    Need,
    Query,
    RunSummary,
    Sign,
)
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

    from playhead_receiver.storage.api.search import Search
    from playhead_receiver.storage.api.store import Store


def need_of(condition: AttributeCondition) -> Need:
    """The keys of which a trace has at least one if it may meet the condition."""
    if condition.name == LEVEL:
        return frozenset(key for name in levels_of(condition) for key in equals(LEVEL, name))
    number = number_in(condition.value)
    values = (condition.value,) if number is None else (condition.value, number)
    keys: set[bytes] = set()
    for name in names_of(condition.name):
        keys |= equals(name, *values) if condition.sign == ":" else has(name)
    if condition.name.startswith(METADATA):
        keys.update(map(name_key, METADATA_OBJECTS))
    if condition.name.startswith(FIELD):
        keys |= equals(a.GEN_AI_EVALUATION_NAME, condition.name.removeprefix(FIELD))
    return frozenset(keys)


def with_attributes(
    store: Search, query: Query, runs: Callable[[Query], Iterator[RunSummary]]
) -> Iterator[RunSummary]:
    """The runs of a query that has conditions on attributes. ``runs``: lists runs without them."""
    having = store.having([need_of(one) for one in query.attributes])
    traces = query.traces
    if having is not None:
        traces = frozenset(having if traces is None else having & traces)
    wide = msgspec.structs.replace(query, attributes=(), traces=traces, limit=sys.maxsize)
    met = (run for run in runs(wide) if meets(store, bytes.fromhex(run.trace_id), query.attributes))
    return islice(met, query.limit)


def meets(store: Store, trace_id: bytes, conditions: Sequence[AttributeCondition]) -> bool:
    """Whether each condition is met by some span, resource, scope, event or log record of a run."""
    left = [one for one in conditions if one.name != LEVEL]
    if not all(_has_log(store, trace_id, one) for one in conditions if one.name == LEVEL):
        return False
    if not left:
        return True
    scores = _scores_of(store, trace_id) if any(one.name.startswith(FIELD) for one in left) else ()
    for attributes in chain(scores, _attributes_of(store, trace_id)):
        left = [one for one in left if not any(_met(one, value) for value in _values(one, attributes))]
        if not left:
            return True
    return not left


def levels_of(condition: AttributeCondition) -> list[str]:
    """Return the names of the levels that meet a condition on the level of log records."""
    bound = LEVELS.get(condition.value, 0)
    return [name for name, least in LEVELS.items() if _compare(condition.sign, least, bound)]


def _has_log(store: Store, trace_id: bytes, condition: AttributeCondition) -> bool:
    wanted = levels_of(condition)
    if not wanted:
        return False
    logs = store.logs(trace_id, LogQuery(level=min(LEVELS[name] for name in wanted)))
    return any(level_name(one.level) in wanted for one in logs)


def _scores_of(store: Store, trace_id: bytes) -> Iterator[dict[str, Any]]:
    """The scores among the log records of a run, as attributes."""
    lines = (log_line(one.otlp) for one in store.logs(trace_id, LogQuery(content=True)))
    return (score.searched for score in scores_in(lines))


def _attributes_of(store: Store, trace_id: bytes) -> Iterator[dict[str, Any]]:
    from playhead_receiver.storage.spans.whole_spans import Deriver

    deriver = Deriver(store)
    for envelope in chain(map(deriver.whole, store.spans(trace_id)), deriver.pending(trace_id)):
        yield from _holders(envelope)


def _holders(envelope: ResourceSpans) -> Iterator[dict[str, Any]]:
    yield attributes_of(envelope.resource.attributes)
    for scoped in envelope.scope_spans:
        yield attributes_of(scoped.scope.attributes)
        for span in scoped.spans:
            own = attributes_of(span.attributes)
            yield {**own, **attributes_in_our_words(own)}
            for event in span.events:
                told = attributes_of(event.attributes)
                score = score_of(told) if event.name == e.GEN_AI_EVALUATION_RESULT else None
                yield told if score is None else told | score.searched


def _values(condition: AttributeCondition, attributes: dict[str, Any]) -> Iterator[Any]:
    """The values that the attribute of a condition has, those in arrays and metadata one by one."""
    for name in names_of(condition.name):
        if name in attributes:
            yield from _elements(attributes[name])
    if condition.name.startswith(METADATA):
        for name in METADATA_OBJECTS:
            held = attributes.get(name)
            held = decoded(held) if isinstance(held, str) else held
            if isinstance(held, dict):
                known = cast("dict[str, Any]", held)
                yield from _elements(known.get(condition.name.removeprefix(METADATA)))


def _elements(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _met(condition: AttributeCondition, value: Any) -> bool:
    sign, wanted = condition.sign, condition.value
    if isinstance(value, bool):
        return sign == ":" and wanted == ("true" if value else "false")
    if sign == ":" and value == wanted:
        return True
    number = number_in(str(value)) if isinstance(value, str | int | float) else None
    bound = number_in(wanted)
    if number is None or bound is None:
        return False
    return not (sign == ":" and isinstance(value, str)) and _compare(sign, number, bound)


def _compare(sign: Sign, number: float, bound: float) -> bool:
    if sign == ":":
        return number == bound
    if sign[0] == ">":
        return number > bound or (sign == ">=" and number == bound)
    return number < bound or (sign == "<=" and number == bound)


def number_in(text: str) -> float | None:
    """The number that a text spells; None if it spells none."""
    with suppress(ValueError):
        return float(text)
    return None
