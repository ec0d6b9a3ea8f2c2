"""Connections of the interpreter itself, even where a program has replaced sockets.

gevent and eventlet replace sockets by their own, which wait in an event loop of the thread that uses
them. A background thread of playhead would make such a loop while the program makes its own, and what
the two import waits for each other, for ever.
"""

from __future__ import annotations

import _socket
import os
import socket
import stat
import sys
from collections.abc import Iterable
from typing import Any, Final

from playhead_core.process.own_descriptors import Identity, identity, moved_up


def _unpatched() -> type[socket.socket]:
    """The class of the standard library; that of the program if the other is unknown."""
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
        made = Socket(fileno=moved_up(Socket(family, kind, protocol).detach(), _is_socket))
        file = identity(made.fileno())
        try:
            for option in options:
                made.setsockopt(*option)
            made.settimeout(timeout_s)
            made.connect(place)
            return made
        except OSError as error:
            problem = error
            detach_lost(made, file)
            made.close()
    raise problem or OSError(f"{address[0]} has no address")


def _is_socket(status: os.stat_result) -> bool:
    return stat.S_ISSOCK(status.st_mode)


def is_own(connection: Any, file: Identity) -> bool:
    """Whether a socket still is ``file``: the program has not closed its number and used it again."""
    number: int = connection.fileno()
    return number >= 0 and identity(number) == file


def detach_lost(connection: Any, file: Identity) -> None:
    """Take the number from a socket that is no longer ``file``, so that closing it closes nothing."""
    if not is_own(connection, file):
        connection.detach()


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
