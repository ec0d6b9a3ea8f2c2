"""Claims: which effects of a run and its relatives have been done, and with which result.

Kept apart from the tape, because a tape cannot know of them: two processes at the same time, a retry
that is a run of its own, a fork that comes to an effect which its origin has done behind the fork point.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, TypeAlias

from playhead_core.facts import Exchange
from playhead_semconv import attributes as a

ENTRY_POINT = "playhead_claims"
"""Entry point group of the functions that open the claims of a data folder (`OpenClaims`)."""

ClaimState: TypeAlias = Literal["ours", "busy", "done", "unknown"]


class Claim(NamedTuple):
    """The answer to an attempt."""

    state: ClaimState
    """``ours``: the asker is to do it now; ``busy``: another attempt does, and its process lives;
    ``done``: it was done; ``unknown``: an attempt began it and did not say how it ended."""
    attempt: bytes
    """The attempt that the state is about: 16 bytes."""
    result: bytes | None = None
    """Of ``done``: what was given to `Claims.done`."""
    name: str = ""
    """The effect that the attempt claimed, as it was given to `Claims.claim`."""
    error: str = ""
    """Of ``unknown``: the error with which the attempt ended; empty if its process died."""


class Claims(Protocol):
    """Effects by lineage and key. Durable when a method returns; safe from any thread, after a fork too.

    An effect is done between two calls::

        claim = claims.claim(lineage, key, "refund")
        if claim.state == "ours":
            result = effect()
            claims.done(claim.attempt, result)

    A process that dies in between leaves the claim ``unknown``. Methods raise `StoreError`.
    """

    def claim(self, lineage: str, key: str, name: str, instead_of: bytes = b"") -> Claim:
        """Claim an effect. Of all that ask for the same at once, one gets ``ours``.

        ``name``: what the effect is called; it does not tell claims apart. ``instead_of``: the attempt
        of a claim that is ``unknown``; if it still is, it becomes ours.
        """
        ...

    def done(self, attempt: bytes, result: bytes | None) -> None:
        """The attempt has done the effect. ``result``: None if it cannot be kept."""
        ...

    def failed(self, attempt: bytes, error: str) -> None:
        """The attempt ended with an error: what became of the effect is unknown."""
        ...

    def give_back(self, attempt: bytes) -> None:
        """The attempt has not done the effect: the next one begins anew."""
        ...


class OpenClaims(Protocol):
    """The entry point: opens claims. May raise; the caller reports the error."""

    def __call__(
        self, folder: str, endpoint: str = "", token: str = "", certificate: str = ""
    ) -> Claims:
        """``folder``: where playhead keeps its data on this machine; made if it is missing.

        ``endpoint``: the query API of a receiver that keeps them instead, with a token for it and the
        authorities that are trusted.
        """
        ...


def place_of_claims(endpoint: str) -> str:
    """The address of a receiver that keeps claims as it stands on a tape: without user and password.

    >>> place_of_claims("http://me:secret@receiver:4319/")
    'http://receiver:4319'
    """
    scheme, _, rest = endpoint.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}".rstrip("/") if rest else ""


def is_claimed(exchange: Exchange) -> bool:
    """Whether an exchange is done once: where it was not answered, its claim says what became of it."""
    return a.PLAYHEAD_IDEMPOTENT_KEY in exchange.ask.details
