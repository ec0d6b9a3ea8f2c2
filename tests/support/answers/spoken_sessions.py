"""Sessions with a model over a WebSocket, as their exchanges have them, and the calls that they are."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from support.tapes.conventions import check_content

from playhead_core.facts import Ask, Content, End, ErrorRecord, Exchange, ExchangeId, Part
from playhead_core.untrusted.spans import count_in
from playhead_genai.providers.realtime.calls import RealtimeCall
from playhead_genai.providers.realtime.connection import realtime_calls
from playhead_genai.providers.realtime.usage import usage_reader, used
from playhead_semconv import attributes as a

SENT, CAME = True, False
REALTIME = "wss://any.host/v1/realtime?model=gpt-realtime"
RESPONSES = "wss://any.host/v1/responses"
LIVE = "wss://any.host/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"


class Frame:
    """A frame that is no message of text: ``close``, ``broken``, …"""

    def __init__(self, opcode: str, data: bytes = b"") -> None:
        self.opcode, self.data = opcode, data


def closed(code: int, reason: str = "") -> Frame:
    return Frame("close", code.to_bytes(2, "big") + reason.encode())


def session(url: str, *messages: tuple[bool, Any], end: ErrorRecord | None = None) -> list[RealtimeCall]:
    """The calls over a connection; the n-th message comes at n seconds. Bytes are sent as they are.

    The connection is open unless it was closed, or ended with ``end``.
    """
    found = Exchange(
        ExchangeId(1, "websocket", 0), Ask("websocket", f"GET {url}", Content.chunk(b"")), 0
    )
    for second, (sent, value) in enumerate(messages):
        frame = value if isinstance(value, Frame) else Frame("text", _data(value))
        told = {"playhead.websocket.opcode": frame.opcode}
        part = Part(Content.chunk(frame.data), second * 10**9, None, told, len(found.sent))
        (found.sent if sent else found.parts).append(part)
    if end is not None:
        found.end = End("error", error=end, time_ns=len(messages) * 10**9)
    calls = realtime_calls(
        url,
        found,
        lambda sent, number: (found.sent if sent else found.parts)[number].data.inline or b"",
    )
    for call in calls:
        check_content(call.attributes)
    assert told_while_it_goes_on(url, messages) == _sums(call.attributes for call in calls)
    return calls


def told_while_it_goes_on(url: str, messages: Iterable[tuple[bool, Any]]) -> list[int]:
    """The tokens that the messages tell of one by one, as far as they have one of the marks."""
    reader = usage_reader(url)
    if reader is None:
        return [0, 0]
    texts = [(sent, _data(value)) for sent, value in messages if not isinstance(value, Frame)]
    marked = [(sent, data) for sent, data in texts if any(mark in data for mark in reader.marks)]
    return _sums([used(reader, sent, data) for sent, data in marked])


def _sums(told: Iterable[Mapping[str, Any]]) -> list[int]:
    names = a.GEN_AI_USAGE_INPUT_TOKENS, a.GEN_AI_USAGE_OUTPUT_TOKENS
    counts = [[count_in(one, name) for name in names] for one in told]
    return [sum(column) for column in zip(*counts, strict=True)] or [0, 0]


def content(call: RealtimeCall, name: str) -> Any:
    return json.loads(str(call.attributes[f"gen_ai.{name}"]))


def _data(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()
