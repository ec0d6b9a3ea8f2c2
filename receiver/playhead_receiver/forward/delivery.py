"""Delivers a request to a destination: retries until it is accepted or permanently refused."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from playhead_exporter.delivery import Endpoint, Signal
from playhead_exporter.shipping.endpoint_answers import (
    Accepted,
    Declined,
    Transport,
    TryLater,
    Unwelcome,
)
from playhead_exporter.shipping.http import HttpTransport
from playhead_receiver.forward.destination import Destination

REQUEST_BYTES = 4 * 1024 * 1024
"""Most uncompressed bytes of a request, unless a single part has more."""
TIMEOUT_S = 10.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_WISH_S = 3600.0
"""Longest pause that a destination may ask for."""
SAY_AFTER = 4
"""Consecutive failures before a message is printed; some 2 s."""
SAY_REFUSED_EVERY_S = 600.0
SHORTEST_SECRET = 8


class Counts(msgspec.Struct):
    """Counts of the delivered parts of requests."""

    sent: int = 0
    """Accepted parts."""
    refused: int = 0
    """Permanently refused parts."""


Say: TypeAlias = Callable[[str], None]
"""Shows a message to the user who runs the receiver."""


def say_nothing(_: str) -> None:
    """No-op callback, for an embedded receiver."""


class DestinationConnection:
    """The connection to a destination; for one thread. Setting ``stopped`` ends a delivery under way.

    `ConfigurationError` if headers or files that the destination names are missing.
    """

    def __init__(
        self,
        destination: Destination,
        stopped: threading.Event,
        what: str,
        say: Say = say_nothing,
    ) -> None:
        """``what``: what is delivered, for messages. ``say``: shows messages on outages and refusals."""
        self._transport = _transport(destination)
        self._secrets = {
            word
            for value in destination.sent_headers().values()
            for word in value.split()
            if len(word) >= SHORTEST_SECRET
        }
        self._stopped = stopped
        self._way = f"{what} to {destination.endpoint}"
        self._say = say
        self._is_said = False
        self._refusal_said_at = -SAY_REFUSED_EVERY_S
        self.problem = ""
        """Why the last attempt failed or was refused; empty if it succeeded."""

    def deliver(
        self, signal: Signal, parts: Sequence[bytes], counts: Counts, *, wanted: bool = True
    ) -> bool:
        """Send a request, joined from ``parts``, until it is accepted or refused; False if stopped.

        A refused request is halved repeatedly, to isolate the part at fault. ``wanted``: retry if the
        destination does not offer the signal; False: count that as a refusal of all parts.
        """
        pause_s = FIRST_PAUSE_S
        tries = 0
        while not self._stopped.is_set():
            answer = self._transport.send(signal, b"".join(parts), TIMEOUT_S)
            tries += 1
            if isinstance(answer, Accepted):
                self._gets_through(answer.message if answer.refused else "")
                refused = min(answer.refused, len(parts))
                counts.sent += len(parts) - refused
                counts.refused += refused
                return True
            if isinstance(answer, Unwelcome) and answer.wrong_place and not wanted:
                self._gets_through()
                counts.refused += len(parts)
                return True
            if isinstance(answer, Declined):
                if len(parts) > 1:
                    self.problem = self._plain(answer.reason)
                    middle = len(parts) // 2
                    return self.deliver(signal, parts[:middle], counts, wanted=wanted) and self.deliver(
                        signal, parts[middle:], counts, wanted=wanted
                    )
                self._gets_through(answer.reason)
                counts.refused += 1
                return True
            self._does_not(answer.reason, tries)
            wait_s = answer.after_s if isinstance(answer, TryLater) else None
            if wait_s is None:
                wait_s = random.uniform(pause_s / 2, pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            self._stopped.wait(min(wait_s, LONGEST_WISH_S))
        return False

    def _gets_through(self, refusal: str = "") -> None:
        """Note a success. ``refusal``: the destination's reason for what it refused permanently."""
        self.problem = self._plain(refusal)
        if self._is_said:
            self._is_said = False
            self._say(f"{self._way} are delivered again")
        if refusal and time.monotonic() - self._refusal_said_at >= SAY_REFUSED_EVERY_S:
            self._refusal_said_at = time.monotonic()
            self._say(f"some {self._way} are permanently refused: {self.problem}")

    def _does_not(self, reason: str, tries: int) -> None:
        self.problem = self._plain(reason)
        if tries == SAY_AFTER and not self._is_said:
            self._is_said = True
            self._say(f"{self._way} cannot be delivered and are queued: {self.problem}")

    def _plain(self, reason: str) -> str:
        """Mask secrets in a reason, because a destination may repeat the headers that it was sent."""
        for secret in self._secrets:
            reason = reason.replace(secret, "***")
        return reason

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._transport.close()


def bounded(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Group parts into lists of at most `REQUEST_BYTES`; a larger part is alone in its list."""
    group: list[bytes] = []
    size = 0
    for part in parts:
        if group and size + len(part) > REQUEST_BYTES:
            yield group
            group, size = [], 0
        group.append(part)
        size += len(part)
    if group:
        yield group


def _transport(destination: Destination) -> Transport:
    headers = destination.sent_headers()
    scheme, _, address = destination.endpoint.partition("://")
    if scheme in ("grpc", "grpcs"):
        from playhead_exporter.shipping.grpc import GrpcTransport  # imported late: heavy, rarely used

        endpoint = Endpoint.parse(f"http{'s' * (scheme == 'grpcs')}://{address}", "grpc")
        return GrpcTransport(endpoint, "", destination.trust, headers)
    endpoint = Endpoint.parse(destination.endpoint, "http/protobuf")
    return HttpTransport(endpoint, "", destination.trust, headers)
