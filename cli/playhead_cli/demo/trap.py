"""Listens at the provider's address, closes every connection, and counts them."""

from __future__ import annotations

import socket
import threading
from types import TracebackType


class Trap:
    """Listens on a loopback port and hangs up on every connection.

    ``contacts``: number of connections.
    """

    def __init__(self, port: int) -> None:
        self.contacts = 0
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._count, name="trap", daemon=True)
        self._thread.start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.contacts += 1
            connection.close()

    def close(self) -> None:
        """Stop listening. Idempotent."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        self._listener.close()
        self._thread.join()

    def __enter__(self) -> Trap:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
