"""Starts of spans: what a fact says about them.

The start of a span is a fact of its own, ``playhead.span.start``. The start of a client span that begins
for an ask waits for that ask: the ask carries the starts of the spans around it that are not recorded
yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from playhead_core.errors import MalformedOtlp
from playhead_core.facts import Fact
from playhead_semconv import attributes as a
from playhead_semconv import events as e

TELL_STARTS = (e.PLAYHEAD_SPAN_START, e.PLAYHEAD_EXCHANGE_REQUEST)
"""Names of the facts that report starts of spans."""

MOST_STARTS = 64
"""Spans that one ask carries at most."""

_INT64_MAX = (1 << 63) - 1

_ID = re.compile(r"[0-9a-f]{16}\Z")

_TYPES: Mapping[str, type] = {
    "span_id": str,
    "parent_id": str,
    "name": str,
    "kind": int,
    "time_ns": int,
    "attributes": dict,
}


def starts_of(fact: Fact) -> list[Fact]:
    """Return the starts in a fact, each as a start fact with the number of the containing fact."""
    if fact.name == e.PLAYHEAD_SPAN_START:
        return [fact]
    found = fact.attributes.get(a.PLAYHEAD_ASK_SPANS)
    if found is None or fact.name != e.PLAYHEAD_EXCHANGE_REQUEST:
        return []
    return [_start(fact, one) for one in found]


def starts_among(facts: Iterable[Fact]) -> list[Fact]:
    """Return the starts in ``facts``."""
    return [start for fact in facts for start in starts_of(fact)]


def check_starts(value: Any) -> None:
    """Raise `MalformedOtlp` if an ask carries something that is not a list of starts."""
    if not isinstance(value, list) or len(cast(list[Any], value)) > MOST_STARTS:
        raise MalformedOtlp(f"{a.PLAYHEAD_ASK_SPANS} is no list of at most {MOST_STARTS} spans")
    for one in cast(list[Any], value):
        wrong = _wrong(cast(dict[str, Any], one) if isinstance(one, dict) else {})
        if wrong:
            raise MalformedOtlp(f"{a.PLAYHEAD_ASK_SPANS} holds a span without a {wrong} that can be")


def _wrong(start: Mapping[str, Any]) -> str:
    """Return the first invalid field of a carried start; empty if all are valid."""
    for name, kind in _TYPES.items():
        if type(start.get(name)) is not kind:
            return name
    if not _ID.match(start["span_id"]):
        return "span_id"
    if start["parent_id"] and not _ID.match(start["parent_id"]):
        return "parent_id"
    numbers = (name for name in ("kind", "time_ns") if not 0 <= start[name] <= _INT64_MAX)
    return next(numbers, "")


def _start(ask: Fact, one: Mapping[str, Any]) -> Fact:
    attributes = dict(one["attributes"])
    attributes[a.PLAYHEAD_SPAN_NAME] = one["name"]
    attributes[a.PLAYHEAD_SPAN_KIND] = one["kind"]
    attributes[a.PLAYHEAD_SPAN_PARENT] = one["parent_id"]
    return msgspec.structs.replace(
        ask,
        name=e.PLAYHEAD_SPAN_START,
        time_ns=one["time_ns"],
        span_id=bytes.fromhex(one["span_id"]),
        exchange=None,
        delivery=None,
        attributes=attributes,
        body=None,
    )
