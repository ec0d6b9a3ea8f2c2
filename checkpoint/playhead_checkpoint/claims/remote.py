"""Claims that a receiver keeps, for agents on any machine."""

from __future__ import annotations

import os
import secrets
import threading
from typing import Final

import msgspec

from playhead_checkpoint.claims.leased import LEASE_S
from playhead_checkpoint.claims.messages import (
    LARGEST_BODY_BYTES,
    LARGEST_RESULT,
    MEDIA_TYPE,
    PATH,
    AttemptEnded,
    AttemptsGoOn,
    ClaimAsked,
    Claimed,
    Said,
    decode_claimed,
    encode,
)
from playhead_checkpoint.receiver_link import ReceiverLink, Refusal
from playhead_core.claims import Claim
from playhead_core.errors import CorruptTape, PlayheadError, StoreUnavailable
from playhead_core.process.interpreter_threads import Bell, Thread

TIMEOUT_S: Final = 10.0
RENEW_S: Final = LEASE_S / 3


class RemoteClaims:
    """`playhead_core.claims.Claims` of a receiver, over its query port.

    ``token``: with the scope ``ingest``. Each method is one request, which is on disk when it returns.
    Without an answer the agent does not know whether it has claimed the effect: `StoreUnavailable`, and
    nothing is to be done. While effects are under way a thread renews their leases.
    """

    def __init__(self, endpoint: str, token: str = "", certificate: str = "") -> None:
        """`UsageError` for what is no address."""

        def link() -> ReceiverLink:
            return ReceiverLink(
                endpoint,
                token=token,
                timeout_s=TIMEOUT_S,
                certificate=certificate,
                most_bytes=LARGEST_BODY_BYTES,
            )

        self._link = link()
        self._renewing = link()  # of its own: renewals wait for nothing
        self._start_afresh()

    def claim(self, lineage: str, key: str, name: str, instead_of: bytes = b"") -> Claim:
        """See `Claims.claim`."""
        self._look()
        asked = ClaimAsked(lineage, key, name, secrets.token_bytes(16), instead_of)
        told = self._ask(self._link, asked)
        if told.state == "ours":
            with self._lock:
                self._going.add(told.attempt)
                self._renew()
        elif told.state == "busy" and told.attempt in self._lost:
            return Claim("unknown", told.attempt, None, told.name)
        return Claim(told.state, told.attempt, told.result, told.name, told.error)

    def done(self, attempt: bytes, result: bytes | None) -> None:
        """See `Claims.done`."""
        kept = None if result is None or len(result) > LARGEST_RESULT else result
        self._end(AttemptEnded(attempt, "done", kept))

    def failed(self, attempt: bytes, error: str) -> None:
        """See `Claims.failed`."""
        self._end(AttemptEnded(attempt, "failed", None, error[:4000]))

    def give_back(self, attempt: bytes) -> None:
        """See `Claims.give_back`."""
        self._end(AttemptEnded(attempt, "not done"))

    def close(self) -> None:
        """Close the connections. What was claimed and not ended is unknown when its lease is over."""
        self._going.clear()
        self._bell.ring()
        self._link.close()
        self._renewing.close()

    def _end(self, said: AttemptEnded) -> None:
        self._look()
        try:
            self._ask(self._link, said)
        except PlayheadError:
            self._lost.add(said.attempt)
            raise
        finally:
            self._going.discard(said.attempt)

    @staticmethod
    def _ask(link: ReceiverLink, said: Said) -> Claimed:
        try:
            answer = link.ask("POST", PATH, encode(said), MEDIA_TYPE)
            if isinstance(answer, Refusal):
                raise link.refused(answer)
            return decode_claimed.decode(answer)
        except CorruptTape as problem:
            raise StoreUnavailable(problem.what, cause=problem.cause) from None
        except (msgspec.MsgspecError, ValueError) as problem:
            raise StoreUnavailable(
                f"the receiver at {link.name} answered something else", cause=str(problem)
            ) from None

    def _start_afresh(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._bell = Bell()
        self._going: set[bytes] = set()
        """The attempts of this process that have not ended."""
        self._lost: set[bytes] = set()
        """Those whose end could not be told."""
        self._thread: Thread | None = None

    def _look(self) -> None:
        """In the child of a fork: what the parent has claimed is the parent's."""
        if self._pid != os.getpid():
            self._start_afresh()

    def _renew(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread("playhead-claims", self._keep_renewing)
            self._thread.start()

    def _keep_renewing(self) -> None:
        while True:
            self._bell.wait(RENEW_S)
            with self._lock:
                going = list(self._going)
                if not going:
                    self._thread = None
                    return
            try:
                self._ask(self._renewing, AttemptsGoOn(going))
            except PlayheadError:
                continue  # the lease runs out, unless the receiver is there again before
