"""The options of a driver, and what a replay may do for real."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import msgspec

from playhead_core.tape.protocols import Sink
from playhead_instrumentation.redaction import Redactor

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Plan


class Allowed(msgspec.Struct, frozen=True):
    """Tools that run for real, and hosts that may be reached if the tape does not answer."""

    tools: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    model: bool = False
    """Whether model calls are made for real; the tape answers all other requests, however often."""

    def __bool__(self) -> bool:
        return bool(self.tools or self.hosts or self.model)

    def reaches(self, host: str) -> bool:
        """Whether the program may reach ``host``, a name or an address."""
        return host in self.hosts or (bool(self.hosts) and host in _addresses(self.hosts))


@functools.cache
def _addresses(hosts: frozenset[str]) -> frozenset[str]:
    addresses: set[str] = set()
    for host in hosts:
        try:
            addresses |= {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        except OSError:
            continue
    return frozenset(addresses)


NOTHING = Allowed()


FILE_LIMIT_BYTES = 16 << 20
"""Default limit; only the digest of a larger file is recorded."""


def _discard(message: str) -> None:
    """Discard the message."""


class DriverOptions(msgspec.Struct, frozen=True):
    """The options of a driver, besides its tape.

    The session creates them at its start and keeps them: the driver of a replay's fork has the same.
    """

    sink: Sink
    """Where the facts go."""
    redactor: Redactor
    """Removes credentials from the facts."""
    level: str = "causal"
    """Level of a recording: ``exchanges``, ``causal`` or ``strict``. A replay has that of its tape."""
    boundaries: Collection[str] = ()
    """Names of the recorded boundaries."""
    file_limit_bytes: int = FILE_LIMIT_BYTES
    """Only the digest of a larger file is recorded."""
    hidden: Collection[str] = ()
    """Folders whose changes are not the program's, such as playhead's own."""
    allowed: Allowed = NOTHING
    """What a replay may do for real."""
    plan: Plan | None = None
    """Plan of a fork or a resume: where it leaves its tape. None: a recording or a replay."""
    report: Callable[[str], None] = _discard
    """Called with a message when a fork leaves its tape."""
