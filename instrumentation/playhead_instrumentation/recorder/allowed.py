"""What a replay may do for real because its user allowed it."""

from __future__ import annotations

import functools
import socket

import msgspec


class Allowed(msgspec.Struct, frozen=True):
    """Tools that run for real, and hosts that may be reached where the tape does not answer."""

    tools: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    model: bool = False
    """Whether all calls of models are made for real; the tape answers the rest, however often."""

    def __bool__(self) -> bool:
        return bool(self.tools or self.hosts or self.model)

    def reaches(self, host: str) -> bool:
        """Whether ``host``, a name or an address, may be reached."""
        return host in self.hosts or (bool(self.hosts) and host in _addresses(self.hosts))


@functools.cache
def _addresses(hosts: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for host in hosts:
        try:
            found |= {str(one[4][0]) for one in socket.getaddrinfo(host, None)}
        except OSError:
            continue
    return frozenset(found)


NOTHING = Allowed()
