"""The firewall of a replay: what no other boundary answers does not get out, loopback included."""

from __future__ import annotations

import errno
import functools
import sys
from typing import Any, cast

from playhead_instrumentation.session import Session, current
from playhead_semconv.errors import WorldBlocked
from playhead_semconv.facts import Fidelity

ADDRESS_AT = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}
"""Audit event → which of its arguments says where to."""


class NetworkBlocked(WorldBlocked, PermissionError):
    """A socket that the tape does not answer. An `OSError`, as a program expects of the network."""

    def __init__(self, target: str) -> None:
        WorldBlocked.__init__(
            self,
            f"the replay does not let the program reach {target}",
            cause="nothing on the tape answers it",
        )
        self.errno = errno.EACCES
        self.strerror = self.what

    __str__ = WorldBlocked.__str__


def watch(session: Session) -> None:
    """Block the network, where only a tape may answer."""
    if session.driver.closed:
        _install()


@functools.cache
def _install() -> None:
    # An audit hook sees every socket of the interpreter, whoever made it; it cannot be taken out again.
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ADDRESS_AT:
        return
    session = current()
    address = arguments[ADDRESS_AT[event]]
    if session is None or not session.driver.closed or address is None:
        return
    if event == "socket.getaddrinfo":
        address = arguments[:2]
    if isinstance(address, tuple):
        host, *port = cast("tuple[Any, ...]", address)[:2]
        target = f"{host}:{port[0]}" if port and port[0] else str(host)
    else:
        target = str(address)
    session.driver.effect("socket", target, fidelity=Fidelity.BLOCKED)
    raise NetworkBlocked(target)
