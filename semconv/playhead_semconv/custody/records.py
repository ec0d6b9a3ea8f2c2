"""What a tape file says of custody beside links: which part of a process it holds, and who signed it."""

from __future__ import annotations

import msgspec

from playhead_semconv.errors import CorruptTape

BEGINNING = b"playhead-signature\x00"


class Part(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """How the facts of a process in a file relate to its chain, where they are not simply those."""

    instance: bytes
    """The process, as the file calls it."""
    origin: bytes
    """The process whose chain it is."""
    numbers: list[tuple[int, int, int]]
    """Stretches of facts: number of the first in the file, its number in the chain, and how many."""
    others: dict[int, bytes] = {}
    """Facts that were written anew for the file, by their number in it: the digest of each."""


class Signed(msgspec.Struct, frozen=True, array_like=True):
    """What a signature is of."""

    trace_id: bytes
    """Of the run."""
    time_ns: int
    facts: int
    spans: int
    heads: list[tuple[bytes, int, bytes]]
    """Of each chain the process, how many links it has, and the last of them."""
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
    """Of `message`."""

    @property
    def message(self) -> bytes:
        """The bytes that were signed."""
        return BEGINNING + self.said


_encode = msgspec.msgpack.Encoder().encode
_decode_signed: msgspec.msgpack.Decoder[Signed] = msgspec.msgpack.Decoder(Signed)


def signed_bytes(signed: Signed) -> bytes:
    """As it stands in a `Signature`."""
    return _encode(signed)


def signed_of(signature: Signature) -> Signed:
    """What a signature is of. `CorruptTape`."""
    try:
        return _decode_signed.decode(signature.said)
    except msgspec.DecodeError as problem:
        raise CorruptTape(f"a signature says nothing that is known: {problem}") from None
