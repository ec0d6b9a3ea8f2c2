"""Messages of playhead, on stderr. Whether anybody can read them changes no result."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO


def write_message(text: str) -> None:
    """Write ``text`` to stderr, or nothing if its reader went away or its disk is full."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard_rest(sys.stderr)


def discard_rest(stream: TextIO) -> None:
    """Send what ``stream`` still buffers to the null device: Python flushes it again at exit."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
