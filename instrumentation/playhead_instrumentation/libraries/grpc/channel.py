"""What the channels of both kinds of gRPC client have in common."""

from __future__ import annotations

from typing import Any

from playhead_instrumentation.session.session import current

READY = 2
"""Connectivity state of a channel at a replay."""


class Channel:
    """Precedes a class of channels of the core among the bases of a class."""

    def __init__(self, target: bytes, *_: Any, **__: Any) -> None:
        self.playhead_target = bytes(target).decode("utf-8", "replace")

    def check_connectivity_state(self, try_to_connect: bool) -> Any:
        """Return the connectivity state; at a replay always `READY`."""
        original: Any = super()
        session = current()
        if session is not None and session.driver.closed:
            return READY
        return original.check_connectivity_state(try_to_connect)
