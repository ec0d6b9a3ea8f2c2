"""One request to one destination: again and again until it is taken, or refused for good."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from playhead_exporter.shipping.answers import Accepted, Refused, Transport, TryLater, Unwelcome
from playhead_exporter.shipping.endpoint import Endpoint, Signal
from playhead_exporter.shipping.http import HttpTransport
from playhead_receiver.forward.destination import Destination

REQUEST_BYTES = 4 * 1024 * 1024
"""No request is longer, uncompressed, unless a single part is."""
TIMEOUT_S = 10.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


class Counts(msgspec.Struct):
    """What became of the parts of requests."""

    sent: int = 0
    """Taken."""
    refused: int = 0
    """Refused for good."""


class Delivery:
    """The way to a destination; for one thread. ``stopped`` ends what is under way.

    `ConfigurationError` if there are no headers where it wants some.
    """

    def __init__(self, destination: Destination, stopped: threading.Event) -> None:
        self._transport = _transport(destination)
        self._stopped = stopped
        self.problem = ""
        """Why nothing gets through just now; empty while it does."""

    def deliver(
        self, signal: Signal, parts: Sequence[bytes], counts: Counts, *, wanted: bool = True
    ) -> bool:
        """Send a request, joined of ``parts``, until it is taken or refused; False if stopped before.

        A request that is refused is halved, until what is to blame stands alone. ``wanted``: a
        destination without a place for the signal is asked on; else that is a refusal of all of it.
        """
        pause_s = FIRST_PAUSE_S
        while not self._stopped.is_set():
            answer = self._transport.send(signal, b"".join(parts), TIMEOUT_S)
            if isinstance(answer, Accepted):
                self.problem = answer.message if answer.refused else ""
                refused = min(answer.refused, len(parts))
                counts.sent += len(parts) - refused
                counts.refused += refused
                return True
            if isinstance(answer, Unwelcome) and answer.wrong_place and not wanted:
                self.problem = ""
                counts.refused += len(parts)
                return True
            self.problem = answer.reason
            if isinstance(answer, Refused):
                if len(parts) > 1:
                    middle = len(parts) // 2
                    return self.deliver(signal, parts[:middle], counts, wanted=wanted) and self.deliver(
                        signal, parts[middle:], counts, wanted=wanted
                    )
                counts.refused += 1
                return True
            wait_s = answer.after_s if isinstance(answer, TryLater) else None
            if wait_s is None:
                wait_s = random.uniform(pause_s / 2, pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            self._stopped.wait(min(wait_s, LONGEST_PAUSE_S))
        return False

    def close(self) -> None:
        """Close its connections. Idempotent."""
        self._transport.close()


def bounded(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Groups of at most `REQUEST_BYTES`; a larger part alone."""
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
        from playhead_exporter.shipping.grpc import GrpcTransport  # heavy, and not everybody wants it

        endpoint = Endpoint.parse(f"http{'s' * (scheme == 'grpcs')}://{address}", "grpc")
        return GrpcTransport(endpoint, "", destination.ca, headers)
    endpoint = Endpoint.parse(destination.endpoint, "http/protobuf")
    return HttpTransport(endpoint, "", destination.ca, headers)
