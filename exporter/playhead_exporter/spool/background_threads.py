"""What a spool asks of the threads that empty it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from playhead_exporter.spool.active_segment import Head


def _nothing() -> None: ...


class BackgroundThreads(msgspec.Struct, frozen=True):
    """What a spool asks of the threads that empty it."""

    begin: Callable[[], None] = _nothing
    """Called when an instance writes its first fact, and again in a forked child."""
    wake_copier: Callable[[], None] = _nothing
    """Called when a head is full."""
    news: Callable[[], None] = _nothing
    """Called after the first append since `Spool.rests` was set, to wake sleeping threads."""
    after_append: Callable[[Head, int], None] | None = None
    """Called, outside the lock, with the head and the offset behind the frame."""
    disk_stalled: Callable[[], str] = lambda: ""
    """Returns why the disk takes nothing at the moment; empty if it does."""
    await_room: Callable[[float], bool] = lambda timeout_s: False
    """Waits up to the given seconds for a free head; False if the copier does not run."""


NO_THREADS = BackgroundThreads()
"""For a spool that nobody empties."""
