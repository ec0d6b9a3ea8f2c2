"""HTTP connections that are closed if their client keeps the server waiting (slowloris)."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_S = 30.0
"""Seconds for the head of a request, from the connection or from the first byte."""
SILENCE_S = 60.0
"""Seconds that a client may be silent in the middle of a body."""

_REFUSAL = b"Invalid HTTP request received."


class ImpatientProtocol(AutoHTTPProtocol):
    """uvicorn's protocol with limits on what a client takes. uvicorn itself limits idle connections."""

    cycle: Any
    loop: Any
    transport: Any
    _timer: asyncio.TimerHandle | None = None
    _awaits_head = False

    def connection_made(self, transport: Any) -> None:
        """As in uvicorn."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """As in uvicorn."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """As in uvicorn."""
        self._stop()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse malformed requests, with the headers that all responses have."""
        lines = (
            b"HTTP/1.1 400 Bad Request",
            b"content-type: text/plain; charset=utf-8",
            b"content-length: %d" % len(_REFUSAL),
            b"x-content-type-options: nosniff",
            b"cache-control: no-store",
            b"connection: close",
        )
        self.transport.write(b"\r\n".join((*lines, b"", _REFUSAL)))
        self.transport.close()

    def _watch(self) -> None:
        """Limit the wait for the next bytes: for a head in total, for a body per piece."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            if not self._awaits_head:
                self._stop()
                self._awaits_head = True
                self._timer = self.loop.call_later(HEAD_S, self._close)
            return
        self._stop()
        if cycle.more_body:
            self._timer = self.loop.call_later(SILENCE_S, self._close)

    def _stop(self) -> None:
        self._awaits_head = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
