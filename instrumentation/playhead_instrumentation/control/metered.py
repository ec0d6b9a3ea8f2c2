"""Counts what the calls over one WebSocket use, while it goes on.

In the program's thread a message is only looked through for a few words. What may tell of usage is read
by the worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from playhead_genai.model_providers import provider_at
from playhead_genai.providers.realtime.usage import usage_reader, used
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_semconv import attributes as a

Used = Callable[[str, dict[str, Any], int], None]
"""Told of a call: trace id of its run, attributes, and when it began."""


class Metered:
    """The messages of one connection that are still to be read. A job of the worker."""

    def __init__(self, count: Used, exchange: MessageExchange) -> None:
        url = exchange.key.partition(" ")[2]
        self._count: Final = count
        self._call: Final = exchange.call
        self._submit: Final = exchange.session.submit
        self._trace: Final = exchange.span_context.trace_id.to_bytes(16, "big").hex()
        self._provider: Final = provider_at(urlsplit(url).hostname or "")
        self._reader: Final = usage_reader(url)
        self._begun: Final[dict[bool, list[bytes]]] = {True: [], False: []}
        """Frames of a message that goes on in the next one, of either side."""
        self._waiting: Final[deque[tuple[bool, bytes]]] = deque()

    def message(self, sent: bool, data: bytes, attributes: Mapping[str, Any]) -> None:
        """A frame goes out or has come in."""
        reader = self._reader
        if reader is None or attributes.get(a.PLAYHEAD_WEBSOCKET_OPCODE) not in MESSAGES:
            return
        begun = self._begun[sent]
        if attributes.get(a.PLAYHEAD_WEBSOCKET_FINAL) is False:
            begun.append(data)
            return
        if begun:
            data = b"".join((*begun, data))
            begun.clear()
        if any(mark in data for mark in reader.marks):
            self._waiting.append((sent, data))
            if b"usage" in data or len(self._waiting) >= MOST_WAITING:
                self._submit(self)

    def finish(self) -> None:
        """Read what waits, in the worker's thread."""
        while self._waiting and self._reader is not None:
            found = used(self._reader, *self._waiting.popleft())
            if found:
                if self._provider:
                    found[a.GEN_AI_PROVIDER_NAME] = self._provider
                self._count(self._trace, found, self._call.time_ns)


MOST_WAITING: Final = 64
"""Messages that wait for one that tells of usage."""

MESSAGES: Final = ("text", "binary", "continuation")
"""Kinds of frames that are parts of messages."""
