"""The few types that recorder, spool, player, receiver and replay share.

A *fact* is something that happened: numbered, immutable, appended before the program sees its
consequence. Everything else (an exchange, a run, a status) is a fold over facts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, TypeAlias

import blake3
import msgspec

Value: TypeAlias = str | int | float | bool | bytes | list[Any] | dict[str, Any] | None
"""What an attribute may hold; the same set as OTLP's AnyValue."""

SCHEMA_VERSION = 1
"""Version of the facts on tape. Fields are only ever added, at the end."""
DERIVER_VERSION = 9
"""Raised when more is derived from the same bytes, so that stored spans are derived again."""


def digest_of(data: bytes | bytearray | memoryview) -> bytes:
    """BLAKE3 of ``data``, 32 bytes."""
    return blake3.blake3(data).digest()


class Content(msgspec.Struct, frozen=True, array_like=True):
    """Bytes, identified by their digest. Only the reader of a tape resolves them.

    * whole: ``inline`` holds all of it, ``base`` is None;
    * extension: the first ``base_bytes`` of the content ``base`` followed by ``inline``, or, if that
      is None, by the content of blob facts of ``digest``;
    * elsewhere: ``inline`` and ``base`` are None; the bytes are in blob facts, or, at replay, on the
      tape that was played.

    ``digest`` is empty for the chunks of a stream and for small values, whose integrity is that of
    their frame; such content is always whole.
    """

    digest: bytes
    size: int
    """Length of the whole content in bytes."""
    inline: bytes | None = None
    base: bytes | None = None
    base_bytes: int = 0

    @classmethod
    def of(cls, data: bytes) -> Content:
        """Whole content with its digest."""
        return cls(digest_of(data), len(data), data)

    @classmethod
    def chunk(cls, data: bytes) -> Content:
        """Whole content without a digest: a chunk of a stream."""
        return cls(b"", len(data), data)

    @property
    def tells(self) -> bool:
        """Whether it defines the bytes of its digest, instead of only referring to them."""
        return bool(self.digest) and (self.inline is not None or self.base is not None)


class ExchangeId(msgspec.Struct, frozen=True, array_like=True):
    """Names an exchange within a process instance; the same at record and at replay."""

    lane: int
    kind: str
    ordinal: int
    """Count of exchanges of this kind in this lane before this one, from 0."""

    def __str__(self) -> str:
        return f"{self.lane:016x}/{self.kind}/{self.ordinal}"

    @classmethod
    def parse(cls, text: str) -> ExchangeId:
        """The inverse of ``str``. ValueError if ``text`` is not an exchange id."""
        lane, kind, ordinal = text.split("/")
        return cls(int(lane, 16), kind, int(ordinal))


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """When something entered or woke the program: a batch is released together, in order."""

    batch: int
    order: int


class Fact(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """Something that happened. Identity is (``instance``, ``seq``), both assigned by the sink."""

    time_ns: int
    """Wall clock, ns since the epoch."""
    lane: int
    name: str
    """An event name of `playhead_semconv.events`."""
    trace_id: bytes = b""
    span_id: bytes = b""
    exchange: ExchangeId | None = None
    delivery: Delivery | None = None
    attributes: dict[str, Any] = {}
    body: Content | None = None
    instance: bytes = b""
    """The process instance: 16 random bytes, renewed after ``os.fork``."""
    seq: int = -1


class ErrorRecord(msgspec.Struct, frozen=True, array_like=True):
    """An exception as it left a boundary, enough to raise it again at replay."""

    module: str
    qualname: str
    message: str
    args: list[Any] = []
    """Those of the exception's ``args`` that are plain values; empty when any is not."""
    phase: str = ""
    """``request``: it was raised while the request was sent, or its connection was made."""

    @property
    def error_type(self) -> str:
        """Value of ``error.type``: the class name, qualified by its module unless it is a builtin."""
        builtin = self.module in ("", "builtins")
        return self.qualname if builtin else f"{self.module}.{self.qualname}"


RETURNS = "returns"
"""Detail of the call of a marked tool that no tape has: name of the type that the tool returns."""


class Ask(msgspec.Struct, frozen=True):
    """A request to the outside world. Its fingerprint is ``kind`` + ``key`` + ``body``."""

    kind: str
    """The boundary: ``http``, ``websocket``, ``grpc``, …"""
    key: str
    """What is requested, e.g. ``POST https://api.openai.com/v1/responses``."""
    body: Content
    effect: Literal["read", "write"] = "read"
    direction: Literal["out", "in"] = "out"
    details: dict[str, Any] = {}
    """Headers and the like; recorded, matched only by rule."""


class Part(msgspec.Struct, frozen=True):
    """A piece of a response, as it arrived."""

    data: Content
    time_ns: int
    delivery: Delivery | None
    attributes: dict[str, Any] = {}
    after: int = 0
    """How many messages the program had sent before it."""


EndedHow: TypeAlias = Literal["complete", "error", "abandoned"]


class End(msgspec.Struct, frozen=True):
    """How an exchange ended."""

    how: EndedHow
    delivery: Delivery | None = None
    error: ErrorRecord | None = None
    time_ns: int = 0
    digest: bytes = b""
    """BLAKE3 of the answer's bytes as they were recorded; empty if none came."""
    values: dict[str, Any] = {}
    """Attributes of the end fact."""
    body: Content | None = None
    """Content of the end fact: the changes of a process to the workspace."""
    after: int = 0
    """How many messages the program had sent before it."""


class Fidelity(StrEnum):
    """How closely a replayed exchange matches the recorded one."""

    EXACT = "exact"
    VOLATILE = "volatile"
    """Equal except for values of the replay's clock and entropy."""
    MOVED = "moved"
    CHANGED = "changed"
    LIVE = "live"
    BLOCKED = "blocked"
    UNUSED = "unused"
    SEMANTIC = "semantic"
    """Answered by an answer that was rebuilt from a span."""


class Exchange(msgspec.Struct):
    """One request, the parts of its response and its end: the fold of its facts."""

    id: ExchangeId
    ask: Ask
    time_ns: int
    trace_id: bytes = b""
    span_id: bytes = b""
    head: dict[str, Any] = {}
    """Attributes of the response fact: status, headers, …; empty when none came."""
    head_delivery: Delivery | None = None
    head_time_ns: int = 0
    parts: list[Part] = []
    end: End | None = None
    """None: unanswered when the tape ends."""
    first_seq: int = -1
    last_seq: int = -1
    fidelity: Fidelity | None = None
    origin: tuple[bytes, int] | None = None
    """When played: instance and sequence number of the exchange on the tape it came from."""
    sent: list[Part] = []
    """Messages that the program sent after its request."""
    head_after: int = 0
    """How many of them it had sent before the head arrived."""
    delivery: Delivery | None = None
    """When the request arrived, if the outside world began the exchange."""
    asked: Content | None = None
    """The program's own body, if an operator sent another one; None: that of ``ask``."""
    controls: list[Fact] = []
    """Facts of operators and rules before it was sent, in order: pauses, edits, the release."""
    released: Delivery | None = None
    """When it was released, if it was paused."""
