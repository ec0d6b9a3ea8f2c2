"""Conversion between bytes of provider APIs and messages: pure functions, one file per dialect."""

from playhead_semconv.wire.catalogue import DIALECTS, wire_of
from playhead_semconv.wire.derive import CONTENT_ATTRIBUTES, Derived, WireResponse, derive
from playhead_semconv.wire.encodings import decode_body
from playhead_semconv.wire.prefix import PrefixCache
from playhead_semconv.wire.recognition import (
    MALFORMED,
    asked_model,
    call_name,
    failure_of,
    may_be_sent_again,
    recognised,
    said_by,
)
from playhead_semconv.wire.sse import ServerSentEvent, SseParser

__all__ = [
    "CONTENT_ATTRIBUTES",
    "DIALECTS",
    "MALFORMED",
    "Derived",
    "PrefixCache",
    "ServerSentEvent",
    "SseParser",
    "WireResponse",
    "asked_model",
    "call_name",
    "decode_body",
    "derive",
    "failure_of",
    "may_be_sent_again",
    "recognised",
    "said_by",
    "wire_of",
]
