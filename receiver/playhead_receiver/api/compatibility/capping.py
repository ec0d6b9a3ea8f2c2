"""Cuts large values for viewers that cannot handle them, and tells where the whole span is."""

from __future__ import annotations

from typing import Any

import msgspec
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.otlp import value_of
from playhead_semconv import attributes as a

LEAST_BYTES = 64
"""Smallest possible cap; it leaves room for the note."""


class Cap(msgspec.Struct, frozen=True):
    """Largest size of an attribute that a viewer is given, and where the rest is."""

    limit_bytes: int
    """0: values are not cut."""
    base_url: str = ""
    """URL of the query API; empty if there is none."""

    def halved(self) -> Cap:
        """The cap with half the limit."""
        limit = max(self.limit_bytes // 2, LEAST_BYTES)
        return msgspec.structs.replace(self, limit_bytes=limit)

    def url_of(self, trace_id: bytes, span_id: bytes) -> str:
        """URL of the whole span."""
        return f"{self.base_url}/v1/spans/{trace_id.hex()}/{span_id.hex()}" if self.base_url else ""

    def apply(self, envelope: ResourceSpans) -> ResourceSpans:
        """Cut large values in place; a span that lost something gets the attribute `playhead.url`."""
        if not self.limit_bytes or envelope.ByteSize() <= self.limit_bytes:
            return envelope
        for scoped in envelope.scope_spans:
            for span in scoped.spans:
                url = self.url_of(span.trace_id, span.span_id)
                lists: list[Any] = [
                    envelope.resource.attributes,
                    scoped.scope.attributes,
                    span.attributes,
                    *(event.attributes for event in span.events),
                    *(link.attributes for link in span.links),
                ]
                cut = [self._cut(pair.value, url) for pairs in lists for pair in pairs]
                if len(span.status.message.encode()) > self.limit_bytes:
                    span.status.message = self._shortened(span.status.message.encode(), url)
                    cut.append(True)
                if any(cut) and url:
                    span.attributes.add(key=a.PLAYHEAD_URL).value.string_value = url
        return envelope

    def shorten(self, value: AnyValue) -> None:
        """Cut a value in place that is not stored whole anywhere."""
        if self.limit_bytes:
            self._cut(value, "")

    def _cut(self, value: AnyValue, url: str) -> bool:
        if value.ByteSize() <= self.limit_bytes:
            return False
        kind = value.WhichOneof("value")
        if kind == "string_value":
            data = value.string_value.encode()
        elif kind == "bytes_value":
            data = value.bytes_value.hex().encode()
        else:
            data = msgspec.json.encode(_plain(value_of(value)))
        if kind == "string_value" and len(data) <= self.limit_bytes:
            return False
        value.string_value = self._shortened(data, url)
        return True

    def _shortened(self, data: bytes, url: str) -> str:
        head = data[: self.limit_bytes].decode(errors="ignore")
        where = f", full: {url}" if url else ""
        return f"{head}… [{len(data)} bytes{where}]"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value
