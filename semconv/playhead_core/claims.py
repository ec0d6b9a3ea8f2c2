"""Claims: which effects of a run family were performed, and with which result.

A tape cannot store them, because it does not know of other runs: a process that runs at the same time, a
retry with a tape of its own, or the origin of a fork, which performed the effect after the fork point.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, TypeAlias

from playhead_core.facts import Exchange
from playhead_semconv import attributes as a

ENTRY_POINT = "playhead_claims"
"""Entry point group of the functions that open the claims of a data folder (`OpenClaims`)."""

ClaimState: TypeAlias = Literal["ours", "busy", "done", "unknown"]


class Claim(NamedTuple):
    """The state of an effect, as returned to an attempt."""

    state: ClaimState
    """``ours``: the caller must perform it now; ``busy``: a live process performs it in another attempt;
    ``done``: it was performed; ``unknown``: an attempt began it and did not report its end."""
    attempt: bytes
    """The attempt that the state is about: 16 bytes."""
    result: bytes | None = None
    """Of ``done``: the result that was passed to `Claims.done`."""
    name: str = ""
    """Name of the effect, as it was passed to `Claims.claim`."""
    error: str = ""
    """Of ``unknown``: the error with which the attempt ended; empty if its process died."""


class Claims(Protocol):
    """Effects by lineage and key. Durable when a method returns; safe from any thread, after a fork too.

    An effect is performed between two calls::

        claim = claims.claim(lineage, key, "refund")
        if claim.state == "ours":
            result = effect()
            claims.done(claim.attempt, result)

    A process that dies in between leaves the claim ``unknown``. Methods raise `StoreError`.
    """

    def claim(self, lineage: str, key: str, name: str, instead_of: bytes = b"") -> Claim:
        """Claim an effect. Of concurrent callers with the same key, one gets ``ours``.

        ``name``: name of the effect; it does not distinguish claims. ``instead_of``: the attempt
        of a claim that is ``unknown``; if it still is, it becomes ours.
        """
        ...

    def done(self, attempt: bytes, result: bytes | None) -> None:
        """Report that the attempt performed the effect. ``result``: None if it cannot be stored."""
        ...

    def failed(self, attempt: bytes, error: str) -> None:
        """Report that the attempt ended with an error: the outcome of the effect is unknown."""
        ...

    def give_back(self, attempt: bytes) -> None:
        """Report that the attempt did not perform the effect: the next one starts again."""
        ...


class OpenClaims(Protocol):
    """The entry point: opens claims. May raise; the caller reports the error."""

    def __call__(
        self, folder: str, endpoint: str = "", token: str = "", certificate: str = ""
    ) -> Claims:
        """Open claims in ``folder``, the data folder of this machine, which is created if it is missing.

        ``endpoint``: query API of a receiver that stores them instead, with a token for it and the
        trusted authorities.
        """
        ...


def place_of_claims(endpoint: str) -> str:
    """Return the address of a claims receiver as stored on a tape: without user and password.

    >>> place_of_claims("http://me:secret@receiver:4319/")
    'http://receiver:4319'
    """
    scheme, _, rest = endpoint.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}".rstrip("/") if rest else ""


def is_claimed(exchange: Exchange) -> bool:
    """Whether an exchange is performed once: its claim knows the outcome, even without a response."""
    return a.PLAYHEAD_IDEMPOTENT_KEY in exchange.ask.details
