"""The calls of a model over one WebSocket, from the messages of its exchange.

A connection is known by its path, and by the messages that its wire begins with, at any host. Audio
stays in the exchange; what was said in it is told by transcripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs, urlsplit

from playhead_core.facts import Exchange, digest_of
from playhead_core.untrusted.shown_text import whole_text, without_halves
from playhead_genai.providers.realtime.calls import Read, RealtimeCall, RealtimeFold, messages_of
from playhead_genai.providers.realtime.ending import ending_of
from playhead_semconv import attributes as a


def _realtime(model: str) -> RealtimeFold:
    from playhead_genai.providers.realtime.openai_realtime import OpenAIRealtimeFold

    return OpenAIRealtimeFold(model)


def _responses(model: str) -> RealtimeFold:
    from playhead_genai.providers.realtime.openai_responses import OpenAIResponsesFold

    return OpenAIResponsesFold(model)


def _gemini(model: str) -> RealtimeFold:
    from playhead_genai.providers.realtime.gemini_live import GeminiLiveFold

    return GeminiLiveFold()


_WIRES: Final[tuple[tuple[str, re.Pattern[str], Callable[[str], RealtimeFold]], ...]] = (
    ("openai.realtime", re.compile(r"/realtime/?\Z"), _realtime),
    ("openai.responses_websocket", re.compile(r"/responses/?\Z"), _responses),
    ("gemini.live", re.compile(r"[./]BidiGenerateContent(Constrained)?/?\Z"), _gemini),
)
"""Name, end of the path, and the fold, which is imported when there is such a connection."""


def realtime_wire(url: str) -> str:
    """Return the wire that a WebSocket's URL belongs to; empty if it is no known one."""
    path = _path(url)
    return next((name for name, form, _ in _WIRES if form.search(path)), "")


def realtime_calls(url: str, exchange: Exchange, read: Read) -> list[RealtimeCall]:
    """Return the calls over a WebSocket to ``url``. What ``read`` raises goes on."""
    path = _path(url)
    for name, form, fold_for in _WIRES:
        if form.search(path):
            fold = fold_for(model_asked(url))
            for message in messages_of(exchange, read):
                fold.message(message)
            try:
                found = fold.calls()
            except RecursionError:  # decoders accept deeper nesting than encoders
                return []
            ending = ending_of(exchange, read)
            for call in found:
                call.attributes = whole_text(call.attributes) | {a.PLAYHEAD_WIRE: name}
                call.error_type = without_halves(call.error_type)
                call.error_message = without_halves(call.error_message)
                if call.ended_ns is None and ending is not None:
                    call.cut(*ending)
            return found
    return []


def realtime_span_id(connection: bytes, number: int) -> bytes:
    """Return the id of the span of a call, the same each time; ``connection``: id of its span."""
    return digest_of(b"%b realtime %d" % (connection, number))[:8]


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def model_asked(url: str) -> str:
    """Return the model that a WebSocket's URL names; empty if it names none."""
    try:
        asked = parse_qs(urlsplit(url).query)
    except ValueError:
        return ""
    return next((asked[name][0] for name in ("model", "deployment") if asked.get(name)), "")
