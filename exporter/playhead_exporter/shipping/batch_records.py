"""What a playhead receiver gets from a spool: windows, in the spool's own format."""

from __future__ import annotations

from playhead_core.otlp_bytes.window_request import window_request
from playhead_exporter.delivery.endpoint import Signal
from playhead_exporter.spool.segments import SpoolWindow


class WindowRequest:
    """Consecutive facts and spans as the spool holds them, compressed."""

    signal = Signal.LOGS

    def __init__(self, window: SpoolWindow, instance: bytes) -> None:
        self.window = window
        self._instance = instance
        self._body = b""

    def body(self) -> bytes:
        """Return the OTLP request. It is built once, because its record is compressed."""
        if not self._body:
            window = self.window
            self._body = window_request(window.tape, *window.numbers(), self._instance, window.resource)
        return self._body
