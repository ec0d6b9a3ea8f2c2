"""Integrity records of a tape file next to links: the facts that it holds, and its signature."""

from __future__ import annotations

import msgspec

from playhead_core.errors import CorruptTape

BEGINNING = b"playhead-signature\x00"


class ChainMapping(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Maps the facts of a process in a file to its chain, if their numbers differ."""

    instance: bytes
    """The process id that the file uses."""
    origin: bytes
    """The process that the chain belongs to."""
    numbers: list[tuple[int, int, int]]
    """Ranges of facts: number of the first in the file, its number in the chain, and the count."""
    others: dict[int, bytes] = {}
    """Facts that were rewritten for the file: their digests by their number in it."""


class Signed(msgspec.Struct, frozen=True, array_like=True):
    """The content of a signature."""

    trace_id: bytes
    """Trace id of the run."""
    time_ns: int
    facts: int
    spans: int
    heads: list[tuple[bytes, int, bytes]]
    """For each chain: the process, the number of links, and the last link."""
    digest: bytes
    """BLAKE3 of all bytes of the file before the record of the signature."""


class Signature(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A signature over a file."""

    scheme: str
    """``ed25519``."""
    key: bytes
    """The public key, 32 bytes."""
    said: bytes
    """MessagePack of a `Signed`."""
    signature: bytes
    """Signature of `message`."""

    @property
    def message(self) -> bytes:
        """The bytes that were signed."""
        return BEGINNING + self.said


_encode = msgspec.msgpack.Encoder().encode
_decode_signed: msgspec.msgpack.Decoder[Signed] = msgspec.msgpack.Decoder(Signed)


def signed_bytes(signed: Signed) -> bytes:
    """Return the bytes of ``signed`` as a `Signature` holds them."""
    return _encode(signed)


def signed_of(signature: Signature) -> Signed:
    """Return the content of a signature. Raises `CorruptTape`."""
    try:
        return _decode_signed.decode(signature.said)
    except msgspec.DecodeError as problem:
        raise CorruptTape(f"the signed content cannot be read: {problem}") from None
