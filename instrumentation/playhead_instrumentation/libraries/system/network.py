"""Connections that no other boundary answers: effects in a recording, refused in a replay.

An audit hook sees every socket that Python opens. Connections made below a boundary, a tool or an
exporter are ignored. Libraries that connect in C raise no event;
`playhead_core.process.module_coverage` lists them by name.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Container
from typing import Any, Final, cast

from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from playhead_core.errors import WorldBlocked
from playhead_core.facts import Fidelity
from playhead_core.process.module_coverage import unseen
from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.attribution.owners import CallSite, caller
from playhead_instrumentation.patching.patches import Patches
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a

log = Log(__name__)

ADDRESS_AT: Final = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}
"""Audit event → index of the argument with the address."""

NAMES: Final = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
"""Audit events of name lookups."""

DATAGRAMS: Final = ("socket.sendto", "socket.sendmsg")
"""Audit events that may be frequent: recorded once per target and lane."""


class NetworkBlocked(WorldBlocked, PermissionError):
    """A socket that the tape does not answer. An `OSError`, as a program expects for the network."""

    def __init__(self, target: str, who: CallSite | None = None) -> None:
        who = who or CallSite()
        place = f"{who.place}: " if who.place else ""
        known = unseen(who.library) if who.library else None
        missing = "it" if known is None else known.missing
        WorldBlocked.__init__(
            self,
            f"the replay does not let {who.library or 'the program'} reach {target}",
            cause=f"{place}the tape has no answer to it, no boundary records {missing}",
            hint="mark the function that does it with @playhead.tool and record again",
        )
        self.errno = errno.EACCES
        self.strerror = self.what

    __str__ = WorldBlocked.__str__


def watch(patches: Patches, session: Session) -> None:
    """Record connections; block them if only a tape may answer."""
    _install()
    _sent.clear()


_sent: set[tuple[int, str]] = set()
"""Lanes and targets of recorded datagrams."""


@functools.cache
def _install() -> None:
    # An audit hook cannot be removed.
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...], heard: Container[str] = ADDRESS_AT) -> None:
    """Hears every event. ``heard`` is there even if the names of this module are gone, at the end."""
    if event not in heard:
        return
    session = current()
    if session is None:
        return
    if session.driver.fenced:
        if arguments[ADDRESS_AT[event]] is not None and not _own():
            _refuse(session, event, arguments)
        return
    try:
        if arguments[ADDRESS_AT[event]] is None:
            return
        lane = lanes.current()
        if lane is lanes.UNRECORDED or _own() or not is_instrumentation_enabled():
            return
        target = _target(event, arguments)
        if event in DATAGRAMS:
            if (lane.hash, target) in _sent:
                return
            _sent.add((lane.hash, target))
        kind = "dns" if event in NAMES else "socket"
        _noted(session, kind, target, caller(2), None)
    except Exception:
        log.debug("playhead could not record a connection", exc_info=True)


def _refuse(session: Session, event: str, arguments: tuple[Any, ...]) -> None:
    allowed = session.driver.allowed
    # In a replay, the unrecorded lane runs only code that the user has allowed to run for real.
    if lanes.current() is lanes.UNRECORDED and allowed:
        return
    target, who = _target(event, arguments), caller(3)
    if allowed.reaches(_host(target)):
        _noted(session, "dns" if event in NAMES else "socket", target, who, Fidelity.LIVE)
        return
    _noted(session, "socket", target, who, Fidelity.BLOCKED)
    raise NetworkBlocked(target, who)


def _noted(session: Session, kind: str, target: str, who: CallSite, fidelity: Fidelity | None) -> None:
    found = {a.PLAYHEAD_EFFECT_LIBRARY: who.library, a.PLAYHEAD_EFFECT_PLACE: who.place}
    session.driver.effect(
        kind,
        session.redactor.text(target),
        fidelity=fidelity,
        attributes={name: value for name, value in found.items() if value},
    )


def _target(event: str, arguments: tuple[Any, ...]) -> str:
    """``host:port``, or the path of a socket file."""
    address = arguments[:2] if event == "socket.getaddrinfo" else arguments[ADDRESS_AT[event]]
    if not isinstance(address, tuple):
        return os.fsdecode(address) if isinstance(address, bytes) else str(address)
    host, *port = cast("tuple[Any, ...]", address)[:2]
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    return f"{name}:{_text(port[0])}" if port and port[0] else name


def _text(port: object) -> str:
    return port.decode("ascii", "replace") if isinstance(port, bytes) else str(port)


def _host(target: str) -> str:
    host, colon, port = target.rpartition(":")
    return host if colon and port.isdigit() else target


def _own() -> bool:
    return lanes.in_own_thread()
