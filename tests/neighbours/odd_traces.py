"""Two hundred odd traces, the same in each run, that SDKs do not make but senders do.

The first of them have one oddity each, in order; the others have three each, chosen by a seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from playhead_core.otlp import set_attributes
from playhead_semconv import attributes as a

TRACES = 200
SECOND = 10**9


class Odd:
    """A trace: a server span, its client span, and the client's server span in another service."""

    def __init__(self, number: int, now: int) -> None:
        self.number = number
        self.trace_id = (0x0DD << 100 | number + 1).to_bytes(16, "big")
        self.entry, self.other = ResourceSpans(), ResourceSpans()
        for entry, name in ((self.entry, "front"), (self.other, "back")):
            set_attributes(entry.resource.attributes, {a.SERVICE_NAME: f"{name}-{number % 7}"})
            entry.scope_spans.add().scope.name = "odd"
        start = now - (TRACES - number) * SECOND
        self.root = self._span(self.entry, 1, b"", f"GET /{number}", 2, start, 900)
        self.call = self._span(self.entry, 2, self.root.span_id, "call", 3, start + 100_000_000, 500)
        self.deep = self._span(self.other, 3, self.call.span_id, "work", 2, start + 200_000_000, 300)

    def _span(
        self, entry: ResourceSpans, number: int, parent: bytes, name: str, kind: int, start: int, ms: int
    ) -> Span:
        return entry.scope_spans[0].spans.add(
            trace_id=self.trace_id,
            span_id=(self.number << 8 | number).to_bytes(8, "big"),
            parent_span_id=parent,
            name=name,
            kind=kind,  # pyright: ignore[reportArgumentType]
            start_time_unix_nano=start,
            end_time_unix_nano=start + ms * 1_000_000,
        )

    @property
    def scope(self) -> ScopeSpans:
        return self.entry.scope_spans[0]


def ends_before_it_starts(odd: Odd) -> None:
    odd.call.end_time_unix_nano = odd.call.start_time_unix_nano - SECOND


def ends_at_zero(odd: Odd) -> None:
    odd.call.end_time_unix_nano = 0


def no_service_name(odd: Odd) -> None:
    del odd.other.resource.attributes[:]


def empty_service_name(odd: Odd) -> None:
    del odd.other.resource.attributes[:]
    set_attributes(odd.other.resource.attributes, {a.SERVICE_NAME: ""})


def slash_in_the_service_name(odd: Odd) -> None:
    del odd.other.resource.attributes[:]
    set_attributes(odd.other.resource.attributes, {a.SERVICE_NAME: f"a/b {odd.number % 7}"})


def two_spans_with_one_id(odd: Odd) -> None:
    """As of Zipkin, where client and server share an id."""
    odd.deep.span_id, odd.deep.parent_span_id = odd.call.span_id, odd.call.parent_span_id


def a_span_twice(odd: Odd) -> None:
    odd.other.scope_spans[0].spans.add().CopyFrom(odd.deep)


def event_with_an_attribute_event(odd: Odd) -> None:
    event = odd.call.events.add(name="retry", time_unix_nano=odd.call.start_time_unix_nano + 5)
    set_attributes(event.attributes, {"event": "mine", "n": 1})


def event_without_a_name(odd: Odd) -> None:
    odd.call.events.add(time_unix_nano=odd.call.start_time_unix_nano + 6)


def event_outside_of_its_span(odd: Odd) -> None:
    odd.call.events.add(name="late", time_unix_nano=odd.call.end_time_unix_nano + SECOND)


def unset_status_with_a_description(odd: Odd) -> None:
    odd.call.status.message = "just so"


def error_with_a_description(odd: Odd) -> None:
    odd.call.status.code, odd.call.status.message = 2, "broken"  # pyright: ignore[reportAttributeAccessIssue]


def no_kind(odd: Odd) -> None:
    odd.call.kind = 0  # pyright: ignore[reportAttributeAccessIssue]


def values_of_every_type(odd: Odd) -> None:
    kept = {
        "b": True,
        "i": -(2**63),
        "d": 0.1,
        "by": b"\0\xff",
        "l": [1, "x", None],
        "m": {"k": {"z": 1}},
    }
    set_attributes(odd.call.attributes, {**kept, "e": "", "l0": [], "m0": {}})


def values_that_are_no_numbers(odd: Odd) -> None:
    set_attributes(odd.call.attributes, {"nan": math.nan, "inf": math.inf})


def attribute_without_a_value(odd: Odd) -> None:
    odd.call.attributes.add(key="empty")


def attribute_without_a_key(odd: Odd) -> None:
    odd.call.attributes.add().value.string_value = "no key"


def one_key_twice(odd: Odd) -> None:
    for value in ("first", "second"):
        odd.call.attributes.add(key="twice").value.string_value = value


def names_that_jaeger_uses_itself(odd: Odd) -> None:
    set_attributes(
        odd.call.attributes, {"span.kind": "mine", "error": "maybe", "otel.status_code": "OK"}
    )


def id_of_64_bits(odd: Odd) -> None:
    odd.trace_id = bytes(8) + (0x0DD << 40 | odd.number).to_bytes(8, "big")
    for span in (odd.root, odd.call, odd.deep):
        span.trace_id = odd.trace_id


def no_root(odd: Odd) -> None:
    odd.root.parent_span_id = b"elsewher"


def its_own_parent(odd: Odd) -> None:
    odd.call.parent_span_id = odd.call.span_id


def parents_in_a_circle(odd: Odd) -> None:
    odd.call.parent_span_id = odd.deep.span_id


def two_roots(odd: Odd) -> None:
    odd.deep.parent_span_id = b""


def letters_of_all_kinds(odd: Odd) -> None:
    odd.call.name = 'ﷺ 👩‍🚀 \x01 \u202e <b> \\ " é'
    set_attributes(odd.call.attributes, {"ключ \n": "значение \x00"})


def no_name(odd: Odd) -> None:
    odd.call.name = ""


def a_large_value(odd: Odd) -> None:
    set_attributes(odd.call.attributes, {"large": "x" * 100_000})


def links(odd: Odd) -> None:
    link = odd.call.links.add(trace_id=b"t" * 16, span_id=b"s" * 8, trace_state="a=b")
    set_attributes(link.attributes, {"why": "queue"})
    odd.call.links.add(trace_id=odd.trace_id, span_id=odd.root.span_id)


def state_and_flags(odd: Odd) -> None:
    odd.call.trace_state, odd.call.flags = "vendor=1", 0x301


def counts_of_dropped(odd: Odd) -> None:
    odd.call.dropped_attributes_count = odd.call.dropped_events_count = 3


def scope_with_attributes(odd: Odd) -> None:
    odd.scope.scope.version = "1.2"
    set_attributes(odd.scope.scope.attributes, {"team": "payments"})
    odd.scope.schema_url = "https://opentelemetry.io/schemas/1.30.0"


def no_scope(odd: Odd) -> None:
    odd.scope.ClearField("scope")


def starts_in_1970(odd: Odd) -> None:
    odd.call.start_time_unix_nano, odd.call.end_time_unix_nano = 0, 5


ODDITIES: tuple[Callable[[Odd], None], ...] = (
    ends_before_it_starts,
    ends_at_zero,
    no_service_name,
    empty_service_name,
    slash_in_the_service_name,
    two_spans_with_one_id,
    a_span_twice,
    event_with_an_attribute_event,
    event_without_a_name,
    event_outside_of_its_span,
    unset_status_with_a_description,
    error_with_a_description,
    no_kind,
    values_of_every_type,
    values_that_are_no_numbers,
    attribute_without_a_value,
    attribute_without_a_key,
    one_key_twice,
    names_that_jaeger_uses_itself,
    id_of_64_bits,
    no_root,
    its_own_parent,
    parents_in_a_circle,
    two_roots,
    letters_of_all_kinds,
    no_name,
    a_large_value,
    links,
    state_and_flags,
    counts_of_dropped,
    scope_with_attributes,
    no_scope,
    starts_in_1970,
)


def odd_traces(now: int) -> Iterator[tuple[Odd, tuple[Callable[[Odd], None], ...]]]:
    """Each trace, with what is odd about it. ``now``: ns, by which alone two results differ."""
    chance = random.Random(39)
    for number in range(TRACES):
        odd = Odd(number, now)
        alone = number < len(ODDITIES)
        chosen = (ODDITIES[number],) if alone else tuple(chance.sample(ODDITIES, 3))
        for make in sorted(chosen, key=ODDITIES.index):
            make(odd)
        yield odd, chosen
