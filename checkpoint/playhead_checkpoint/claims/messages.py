"""Messages by which agents claim effects at a receiver, as MessagePack."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from playhead_core.claims import ClaimState

PATH: Final = "claims"
MEDIA_TYPE: Final = "application/octet-stream"
LARGEST_RESULT: Final = 16 << 20
LARGEST_BODY_BYTES: Final = LARGEST_RESULT + (1 << 16)

Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=1024)]
AttemptId: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]


class ClaimRequest(msgspec.Struct, frozen=True, tag="claim"):
    """Claim an effect. It may be sent again: the same attempt gets the same answer."""

    lineage: Word
    key: Word
    name: Word
    attempt: AttemptId
    instead_of: Annotated[bytes, msgspec.Meta(max_length=16)] = b""


class AttemptEnded(msgspec.Struct, frozen=True, tag="end"):
    """Report the end of an attempt."""

    attempt: AttemptId
    outcome: Literal["done", "failed", "not done"]
    result: Annotated[bytes, msgspec.Meta(max_length=LARGEST_RESULT)] | None = None
    error: Annotated[str, msgspec.Meta(max_length=4000)] = ""


class AttemptsRenewed(msgspec.Struct, frozen=True, tag="renew"):
    """Renew the leases of attempts that are still in progress."""

    attempts: Annotated[list[AttemptId], msgspec.Meta(max_length=10_000)]


ClaimMessage: TypeAlias = ClaimRequest | AttemptEnded | AttemptsRenewed


class Claimed(msgspec.Struct, frozen=True):
    """The answer to a claim, as `Claim`; to other messages it has the state ``done``."""

    state: ClaimState
    attempt: bytes = b""
    result: bytes | None = None
    name: str = ""
    error: str = ""


encode: Final = msgspec.msgpack.Encoder().encode
decode_message: Final[msgspec.msgpack.Decoder[ClaimMessage]] = msgspec.msgpack.Decoder(ClaimMessage)
decode_claimed: Final = msgspec.msgpack.Decoder(Claimed)
