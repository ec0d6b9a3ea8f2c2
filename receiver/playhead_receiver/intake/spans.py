"""A request of traces, read: each span by itself, so that one that is none does not spoil the others."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from playhead_receiver.store.protocol.store import Place, ReadSpan
from playhead_receiver.store.spans.span_view import Envelope, parse_span, resource_summary, surroundings
from playhead_semconv.errors import MalformedOtlp

MOST_REJECTED = 50_000
"""After so many the request is no request: each takes its time."""
PROBLEMS_TOLD = 5
"""How many different reasons a partial success names."""


class Rejections(msgspec.Struct):
    """What of a request was not taken, and why."""

    count: int = 0
    reasons: dict[str, int] = {}

    def add(self, problem: MalformedOtlp) -> None:
        """One more span or log record was rejected. `MalformedOtlp` if all of the request is, now."""
        self.count += 1
        self.reasons[problem.what] = self.reasons.get(problem.what, 0) + 1
        if self.count > MOST_REJECTED:
            raise MalformedOtlp(f"more than {MOST_REJECTED} items of the request cannot be read: {self}")

    def join(self, others: Rejections) -> None:
        """Those of a part of the request, too. `MalformedOtlp` as `add`."""
        for what, count in others.reasons.items():
            for _ in range(count):
                self.add(MalformedOtlp(what))

    def __str__(self) -> str:
        told = [
            f"{what} ({count}×)" if count > 1 else what
            for what, count in list(self.reasons.items())[:PROBLEMS_TOLD]
        ]
        more = len(self.reasons) - len(told)
        return "; ".join(told) + (f"; and {more} other reasons" if more > 0 else "")


def read_spans(body: bytes) -> tuple[list[ReadSpan], Rejections]:
    """The spans of an export request, and what of it is none.

    `MalformedOtlp` if it cannot be read at all.
    """
    rejections = Rejections()
    spans: list[ReadSpan] = []
    at = 0
    for entry in read_envelope(body).entries:
        resource = entry.resource
        for scoped in entry.scopes:
            scope, around = scoped.scope, surroundings(entry, scoped)
            back = around.back
            for item in scoped.items:
                begin = _begin(body, item, at)
                at = begin + len(item)
                try:
                    resource_summary(resource)
                    check_scope(scope)
                    view = parse_span(item)
                except MalformedOtlp as problem:
                    rejections.add(problem)
                    continue
                place = Place(body, begin, at, around.front_of(len(item)), back)
                spans.append(ReadSpan(view, resource, around.resource, place))
    return spans, rejections


def read_envelope(body: bytes) -> Any:
    """An export request as an `Envelope`. `MalformedOtlp` if it is none."""
    try:
        return Envelope.FromString(body)
    except DecodeError as problem:
        raise MalformedOtlp(f"the body is no export request: {problem}") from None


@lru_cache(maxsize=256)
def check_scope(scope: bytes) -> None:
    """`MalformedOtlp` if it is no instrumentation scope."""
    try:
        InstrumentationScope.FromString(scope)
    except DecodeError as problem:
        raise MalformedOtlp(f"instrumentation scope cannot be decoded: {problem}") from None


def _begin(body: bytes, item: bytes, at: int) -> int:
    """Where ``item`` lies in ``body``: mostly where it would if it is next to what ends at ``at``."""
    next_one = at + 1 + (len(item).bit_length() + 6) // 7
    return next_one if body.startswith(item, next_one) else body.index(item, at)
