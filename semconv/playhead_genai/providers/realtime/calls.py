"""What one message of a connection is, and a call that is made of some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol, cast

import msgspec

from playhead_core.facts import Exchange, Part, Value
from playhead_genai.messages import OutputMessage, called_in, to_json
from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.reading import Object, parse_piece
from playhead_semconv import attributes as a


class SessionMessage(msgspec.Struct, frozen=True):
    """One message of a connection."""

    time_ns: int
    sent: bool
    """Whether the program sent it; else it was received."""
    value: Object | None
    """None: it is no JSON object."""


MALFORMED: Final = "malformed_response"
"""``error.type`` of an answer in the middle of which a message came that cannot be read."""


class RealtimeCall(msgspec.Struct):
    """One answer of the model, and what it answers."""

    started_ns: int
    ended_ns: int | None = None
    """None: the answer has not ended."""
    first_ns: int | None = None
    """When the first piece of the answer came."""
    attributes: dict[str, Value] = {}
    error_type: str = ""
    """Value of ``error.type``; empty: no error."""
    error_message: str = ""

    def at_host(self, provider: str) -> dict[str, Value]:
        """Return the attributes that follow from where it was asked, and from how it ended."""
        named: dict[str, Value] = {a.GEN_AI_PROVIDER_NAME: provider} if provider else {}
        return named | ({a.ERROR_TYPE: self.error_type} if self.error_type else {})

    def add(self, said: ResponseContent) -> None:
        """Add what the model said."""
        self.attributes |= said.attributes
        if said.finish_reasons:
            self.attributes[a.GEN_AI_RESPONSE_FINISH_REASONS] = [*said.finish_reasons]
        if said.messages:
            self.attributes[a.GEN_AI_OUTPUT_MESSAGES] = to_json(said.messages)
            self._called(said.messages)
        self.attributes[a.GEN_AI_REQUEST_STREAM] = True
        if self.first_ns is not None:
            waited_s = max(0, self.first_ns - self.started_ns) / 1e9
            self.attributes[a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] = waited_s

    def fail(self, kind: str, message: str) -> None:
        """Note an error, unless there was one before; ``kind``: value of ``error.type``."""
        if not self.error_type:
            self.error_type, self.error_message = kind, message

    def malformed(self) -> None:
        """A message came before the end of the answer, and cannot be read."""
        self.fail(MALFORMED, "a message is no JSON object")

    def cut(self, time_ns: int, error_type: str, error_message: str) -> None:
        """The connection ended before the answer did. An empty ``error_type``: the program left."""
        self.ended_ns = time_ns
        if error_type:
            self.fail(error_type, error_message)
        elif not self.error_type:
            self.attributes[a.PLAYHEAD_END_HOW] = "abandoned"

    def _called(self, messages: list[OutputMessage]) -> None:
        called = called_in(messages)
        if called:
            self.attributes[a.PLAYHEAD_TOOL_CALLED] = [*called]


class RealtimeFold(Protocol):
    """Joins the messages of one connection into calls. Never raises for an unknown shape."""

    def message(self, message: SessionMessage) -> None:
        """Add the next message."""
        ...

    def calls(self) -> list[RealtimeCall]:
        """Return the calls, in order; none if the messages are those of another wire."""
        ...


Read = Callable[[bool, int], bytes]
"""Returns the bytes of a message: whether the program sent it, and its number among those, from 0."""


def messages_of(exchange: Exchange, read: Read) -> Iterator[SessionMessage]:
    """Yield the messages of text and of bytes. What ``read`` raises goes on."""
    begun: dict[bool, list[bytes]] = {True: [], False: []}
    for sent, number, part in in_order(exchange):
        kind = part.attributes.get(a.PLAYHEAD_WEBSOCKET_OPCODE)
        if kind not in ("text", "binary", "continuation"):
            continue
        begun[sent].append(read(sent, number))
        if part.attributes.get(a.PLAYHEAD_WEBSOCKET_FINAL) is False:
            continue
        data, begun[sent] = b"".join(begun[sent]), []
        yield SessionMessage(part.time_ns, sent, object_in(data))


def in_order(exchange: Exchange) -> Iterator[tuple[bool, int, Part]]:
    """Yield the frames of both directions: whether the program sent it, and its number among those."""
    at, sent = 0, exchange.sent
    for number, part in enumerate(exchange.parts):
        before = max(at, min(part.after, len(sent)))
        yield from ((True, index, sent[index]) for index in range(at, before))
        at = before
        yield False, number, part
    yield from ((True, index, sent[index]) for index in range(at, len(sent)))


def object_in(data: bytes) -> Object | None:
    """Return the JSON object that a message is; None if it is none.

    Halves of a character that the server cut between two messages stay, so that they can be joined.
    """
    try:
        value, _ = parse_piece(data)
    except (ValueError, RecursionError):
        return None
    return cast(Object, value) if isinstance(value, dict) else None
