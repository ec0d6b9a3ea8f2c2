"""Parses how much is kept of what a service did outside of requests."""

from __future__ import annotations

from playhead_core.errors import ConfigurationError
from playhead_receiver.storage.api.retention import History
from playhead_receiver.storage.retention.amounts import FOREVER_S, duration_s, size_of

_WORDS = "1h 64MiB: a time and a size; or off"
EVERYTHING = 1 << 62


def history_of(text: str) -> History | None:
    """Parse ``1h 64MiB``: a time, a size, or both; None for ``off`` and ``0``, which keep everything.

    `ConfigurationError` if the text is malformed.
    """
    words = text.split()
    if words in (["off"], ["0"]):
        return None
    time_s, size_bytes = FOREVER_S, EVERYTHING
    said: set[bool] = set()
    for word in words:
        is_time = word == "forever" or word[-1] in "smhdw"
        if is_time in said:
            raise ConfigurationError(f"process-history {text!r}: {word} is one too many", hint=_WORDS)
        said.add(is_time)
        try:
            if is_time:
                time_s = duration_s(word)
            else:
                size_bytes = size_of(word)
        except ConfigurationError as problem:
            raise ConfigurationError(f"process-history {word}: {problem.what}", hint=_WORDS) from None
    if not said:
        raise ConfigurationError("process-history says nothing", hint=_WORDS)
    return History(time_s, size_bytes)
