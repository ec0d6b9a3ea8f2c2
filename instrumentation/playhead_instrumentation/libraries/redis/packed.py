"""Commands as redis-py has packed them."""

from __future__ import annotations

from typing import Any, cast


def joined(command: Any) -> bytes:
    """The bytes of one or several commands, in whichever form they are sent."""
    if isinstance(command, str):
        return command.encode()
    if isinstance(command, bytes | bytearray | memoryview):
        return bytes(cast("bytes", command))
    return b"".join(command)
