"""Ports of loopback for what a test starts by number, and one at which nothing listens.

The system gives the ports of `ip_local_port_range` to whoever asks for any: one of them that was free a
moment ago may be another test's.
"""

from __future__ import annotations

import atexit
import functools
import random
import socket

FIRST, LAST = 20_000, 32_000
"""Below the range from which Linux takes ports by itself."""

_chance = random.SystemRandom()


def free() -> int:
    """A port that nothing listens at, and that the system gives to nobody."""
    while True:
        port = _chance.randrange(FIRST, LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


@functools.cache
def closed() -> int:
    """A port at which nothing listens as long as this process lives, which holds it."""
    _held.bind(("127.0.0.1", 0))
    return _held.getsockname()[1]


_held = socket.socket()
atexit.register(_held.close)


def nobody() -> str:
    """An address at which nothing listens."""
    return f"http://127.0.0.1:{closed()}"
