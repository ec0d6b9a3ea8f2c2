"""The messages of a WebSocket, in their order, from the frames of its exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from playhead_core.facts import Exchange, Part
from playhead_genai.providers.reading import Object, parse_piece
from playhead_genai.providers.realtime.calls import SessionMessage
from playhead_semconv import attributes as a

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
    """Return the JSON object that a message is; None where it is none.

    Halves of a character that the server cut between two messages stay, so that they can be joined.
    """
    try:
        value, _ = parse_piece(data)
    except (ValueError, RecursionError):
        return None
    return cast(Object, value) if isinstance(value, dict) else None
