"""Conversion between bytes of provider APIs and messages: pure functions, one file per dialect."""

from playhead_genai.providers.catalogue import DIALECTS, wire_of
from playhead_genai.providers.derive import CONTENT_ATTRIBUTES, Derived, WireResponse, derive
from playhead_genai.providers.encodings import decode_body
from playhead_genai.providers.prefix import PrefixCache
from playhead_genai.providers.recognition import (
    MALFORMED,
    call_name,
    failure_of,
    may_be_sent_again,
    recognised,
    requested_model,
    span_attributes,
)
from playhead_genai.providers.sse import ServerSentEvent, SseParser

__all__ = [
    "CONTENT_ATTRIBUTES",
    "DIALECTS",
    "MALFORMED",
    "Derived",
    "PrefixCache",
    "ServerSentEvent",
    "SseParser",
    "WireResponse",
    "call_name",
    "decode_body",
    "derive",
    "failure_of",
    "may_be_sent_again",
    "recognised",
    "requested_model",
    "span_attributes",
    "wire_of",
]
