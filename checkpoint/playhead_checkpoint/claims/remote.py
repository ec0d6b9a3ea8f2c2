"""Claims in a receiver, for agents on any machine."""

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
    AttemptsRenewed,
    Claimed,
    ClaimMessage,
    ClaimRequest,
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

    ``token``: with the scope ``ingest``. Each method is one request, on disk when the method returns.
    Without an answer (`StoreUnavailable`) it is unknown whether the effect is claimed, so the agent must
    not perform it. While effects are in progress, a thread renews their leases.
    """

    def __init__(self, endpoint: str, token: str = "", certificate: str = "") -> None:
        """`UsageError` if ``endpoint`` is not an address."""

        def link() -> ReceiverLink:
            return ReceiverLink(
                endpoint,
                token=token,
                timeout_s=TIMEOUT_S,
                certificate=certificate,
                most_bytes=LARGEST_BODY_BYTES,
            )

        self._link = link()
        self._renewing = link()  # a separate connection: renewals never wait
        self._reset()

    def claim(self, lineage: str, key: str, name: str, instead_of: bytes = b"") -> Claim:
        """See `Claims.claim`."""
        self._reset_after_fork()
        request = ClaimRequest(lineage, key, name, secrets.token_bytes(16), instead_of)
        answer = self._ask(self._link, request)
        if answer.state == "ours":
            with self._lock:
                self._open.add(answer.attempt)
                self._renew()
        elif answer.state == "busy" and answer.attempt in self._lost:
            return Claim("unknown", answer.attempt, None, answer.name)
        return Claim(answer.state, answer.attempt, answer.result, answer.name, answer.error)

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
        """Close the connections. Open claims become unknown when their leases expire."""
        self._open.clear()
        self._bell.ring()
        self._link.close()
        self._renewing.close()

    def _end(self, message: AttemptEnded) -> None:
        self._reset_after_fork()
        try:
            self._ask(self._link, message)
        except PlayheadError:
            self._lost.add(message.attempt)
            raise
        finally:
            self._open.discard(message.attempt)

    @staticmethod
    def _ask(link: ReceiverLink, message: ClaimMessage) -> Claimed:
        try:
            answer = link.ask("POST", PATH, encode(message), MEDIA_TYPE)
            if isinstance(answer, Refusal):
                raise link.refused(answer)
            return decode_claimed.decode(answer)
        except CorruptTape as problem:
            raise StoreUnavailable(problem.what, cause=problem.cause) from None
        except (msgspec.MsgspecError, ValueError) as problem:
            raise StoreUnavailable(
                f"the receiver at {link.name} answered something else", cause=str(problem)
            ) from None

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._bell = Bell()
        self._open: set[bytes] = set()
        """The open attempts of this process."""
        self._lost: set[bytes] = set()
        """Attempts whose end could not be reported."""
        self._thread: Thread | None = None

    def _reset_after_fork(self) -> None:
        """In a forked child, forget the claims: they belong to the parent."""
        if self._pid != os.getpid():
            self._reset()

    def _renew(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread("playhead-claims", self._keep_renewing)
            self._thread.start()

    def _keep_renewing(self) -> None:
        while True:
            self._bell.wait(RENEW_S)
            with self._lock:
                going = list(self._open)
                if not going:
                    self._thread = None
                    return
            try:
                self._ask(self._renewing, AttemptsRenewed(going))
            except PlayheadError:
                continue  # the lease expires, unless the receiver returns in time
