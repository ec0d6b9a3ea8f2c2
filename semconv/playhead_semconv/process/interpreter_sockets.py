"""Connections of the interpreter itself, even where a program has replaced sockets.

gevent and eventlet replace sockets by their own, which wait in an event loop of the thread that uses
them. A background thread of playhead would make such a loop while the program makes its own, and what
the two import waits for each other, for ever.
"""

from __future__ import annotations

import _socket
import socket
import sys
from collections.abc import Iterable
from typing import Any, Final


def _unpatched() -> type[socket.socket]:
    """The class of the standard library; that of the program if nobody knows the other."""
    gevent: Any = sys.modules.get("gevent.monkey")
    eventlet: Any = sys.modules.get("eventlet.patcher")
    if socket.socket.__module__ == "socket":
        return socket.socket
    if gevent is not None and gevent.is_object_patched("socket", "socket"):
        return gevent.get_original("socket", "socket")
    if eventlet is not None and eventlet.is_monkey_patched("socket"):
        return eventlet.original("socket").socket
    return socket.socket


Socket: Final = _unpatched()
"""Blocks a system thread."""


def connect(
    address: tuple[str, int],
    timeout_s: float | None = None,
    options: Iterable[tuple[int, int, Any]] = (),
) -> socket.socket:
    """Open a TCP connection to the first address of a host that takes it.

    ``timeout_s``: of each attempt, and of each later read and write; None: unlimited. ``options``:
    level, name and value. OSError; `socket.gaierror` where the host has no address.
    """
    problem: OSError | None = None
    for family, kind, protocol, _, place in _socket.getaddrinfo(*address, 0, _socket.SOCK_STREAM):
        made = Socket(family, kind, protocol)
        try:
            for option in options:
                made.setsockopt(*option)
            made.settimeout(timeout_s)
            made.connect(place)
            return made
        except OSError as error:
            problem = error
            made.close()
    raise problem or OSError(f"{address[0]} has no address")


def is_open(connection: _socket.socket) -> bool:
    """Whether a connection on which nothing is expected has neither ended nor said anything."""
    if connection.fileno() < 0:
        return False
    timeout_s = connection.gettimeout()
    connection.settimeout(0)
    try:
        _socket.socket.recv(connection, 1, _socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        connection.settimeout(timeout_s)
    return False
