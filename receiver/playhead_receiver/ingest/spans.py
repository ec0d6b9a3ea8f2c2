"""Reads a traces request span by span, so that a malformed span does not spoil the others."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from playhead_core.errors import MalformedOtlp
from playhead_receiver.storage.spans.span_view import (
    Envelope,
    parse_span,
    resource_summary,
    surroundings,
)
from playhead_receiver.storage.values.stored import ReadSpan, SpanLocation

MOST_REJECTED = 50_000
"""With more rejected items the whole request is rejected, because each takes time."""
MOST_REASONS = 5
"""Most different reasons that a partial success names."""


class Rejections(msgspec.Struct):
    """How many items of a request were rejected, and why."""

    count: int = 0
    reasons: dict[str, int] = {}

    def add(self, problem: MalformedOtlp) -> None:
        """Count one more rejected span or log record. `MalformedOtlp` above `MOST_REJECTED`."""
        self.count += 1
        self.reasons[problem.what] = self.reasons.get(problem.what, 0) + 1
        if self.count > MOST_REJECTED:
            raise MalformedOtlp(f"more than {MOST_REJECTED} items of the request cannot be read: {self}")

    def join(self, others: Rejections) -> None:
        """Add the rejections of a part of the request. `MalformedOtlp` as in `add`."""
        for what, count in others.reasons.items():
            for _ in range(count):
                self.add(MalformedOtlp(what))

    def __str__(self) -> str:
        shown = [
            f"{what} ({count}×)" if count > 1 else what
            for what, count in list(self.reasons.items())[:MOST_REASONS]
        ]
        more = len(self.reasons) - len(shown)
        return "; ".join(shown) + (f"; and {more} other reasons" if more > 0 else "")


def read_spans(body: bytes) -> tuple[list[ReadSpan], Rejections]:
    """The spans of an export request, and the rejections of malformed ones.

    `MalformedOtlp` if the request cannot be read at all.
    """
    rejections = Rejections()
    spans: list[ReadSpan] = []
    at = 0
    for entry in read_envelope(body).entries:
        resource = entry.resource
        for scoped in (*entry.scopes, *entry.libraries):
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
                place = SpanLocation(body, begin, at, around.front_of(len(item)), back)
                spans.append(ReadSpan(view, resource, around.resource, place))
    return spans, rejections


def read_envelope(body: bytes) -> Any:
    """Decode an export request to an `Envelope`. `MalformedOtlp` if it cannot be decoded."""
    try:
        envelope = Envelope.FromString(body)
    except DecodeError as problem:
        raise MalformedOtlp(f"the body is no export request: {problem}") from None
    if body and not envelope.entries:
        raise MalformedOtlp("the body is no export request: it has only unknown fields")
    return envelope


@lru_cache(maxsize=256)
def check_scope(scope: bytes) -> None:
    """Check the bytes of an instrumentation scope. `MalformedOtlp` if they cannot be decoded."""
    try:
        InstrumentationScope.FromString(scope)
    except DecodeError as problem:
        raise MalformedOtlp(f"instrumentation scope cannot be decoded: {problem}") from None


def _begin(body: bytes, item: bytes, at: int) -> int:
    """Where ``item`` begins in ``body``; usually it follows directly on the item that ends at ``at``."""
    next_one = at + 1 + (len(item).bit_length() + 6) // 7
    return next_one if body.startswith(item, next_one) else body.index(item, at)
