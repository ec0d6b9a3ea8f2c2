"""Decides whether the spans of a run meet conditions on attributes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

import msgspec

from playhead_core.otlp import attributes_of
from playhead_genai.other_conventions import attributes_in_our_words
from playhead_genai.run_fields import METADATA, METADATA_OBJECTS, decoded, names_of
from playhead_receiver.storage.runs.attribute_keys import equals, has, name_key
from playhead_receiver.storage.values.run_summaries import (
    AttributeCondition,
    Need,
    Query,
    RunSummary,
)

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

    from playhead_receiver.storage.api.search import Search
    from playhead_receiver.storage.api.store import Store


def need_of(condition: AttributeCondition) -> Need:
    """The keys of which a trace has at least one if it may meet the condition."""
    number = number_in(condition.value)
    values = (condition.value,) if number is None else (condition.value, number)
    keys: set[bytes] = set()
    for name in names_of(condition.name):
        keys |= equals(name, *values) if condition.sign == ":" else has(name)
    if condition.name.startswith(METADATA):
        keys.update(map(name_key, METADATA_OBJECTS))
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
    """Whether each condition is met by some span of a run, or by its resource, scope or events."""
    left = list(conditions)
    for attributes in _attributes_of(store, trace_id):
        left = [one for one in left if not any(_met(one, value) for value in _values(one, attributes))]
        if not left:
            return True
    return not left


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
            yield from (attributes_of(event.attributes) for event in span.events)


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
    if sign == ":":
        return not isinstance(value, str) and number == bound
    if sign[0] == ">":
        return number > bound or (sign == ">=" and number == bound)
    return number < bound or (sign == "<=" and number == bound)


def number_in(text: str) -> float | None:
    """The number that a text spells; None if it spells none."""
    with suppress(ValueError):
        return float(text)
    return None
