"""Stand in for the recorded server: a socket of this process that sends recorded messages.

libpq connects to it as to any server, so results, errors and states are made by libpq itself. What libpq
sends is read and dropped. Nothing here waits: the kernel buffers the data.
"""

from __future__ import annotations

import itertools
import os
import socket
from typing import Any, Final

DROP_BYTES: Final = 1 << 16

_numbers = itertools.count(1)


class StandIn:
    """One connection of a server that plays a recording."""

    def __init__(self, port: int) -> None:
        self.name = f"@playhead-{os.getpid()}-{next(_numbers)}"
        """What libpq takes for a host."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"\0{self.name[1:]}/.s.PGSQL.{port}")
        self._listener.listen(1)
        self._listener.setblocking(False)
        self._sock: socket.socket | None = None
        self._unsaid = b""

    def accept(self) -> None:
        """libpq has connected."""
        self._sock, _ = self._listener.accept()
        self._sock.setblocking(False)
        self._listener.close()

    def drop(self) -> None:
        """Read what libpq has sent."""
        try:
            while self._sock is not None and self._sock.recv(DROP_BYTES):
                pass
        except OSError:
            return

    def flush(self, pgconn: Any) -> None:
        """Let libpq send all that it has to send."""
        self.drop()
        while pgconn.flush():
            self.drop()
        self.drop()

    def say(self, data: bytes, pgconn: Any) -> None:
        """Say ``data``, and let libpq take it."""
        self.flush(pgconn)
        rest = memoryview(data)
        while rest and self._sock is not None:
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                pass
            pgconn.consume_input()

    def tell(self, data: bytes) -> None:
        """Say ``data``, which is short, to a connection that is being opened."""
        if self._sock is not None:
            self._sock.sendall(data)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the connection from the side of the server."""
        self._listener.close()
        if self._sock is not None:
            self._sock.close()
            self._sock = None
