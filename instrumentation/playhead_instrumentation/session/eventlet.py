"""Prevents deadlocks between eventlet and threads of playhead.

eventlet holds the global import lock while it imports modules anew. A thread in the middle of an import
needs that lock for its next import; if eventlet wants the same module, both wait forever. Therefore
threads of playhead import everything they need before that.
"""

from __future__ import annotations

import contextlib
from types import ModuleType

from playhead_instrumentation.session import session


def before_eventlet(module: ModuleType) -> None:
    """``eventlet.patcher`` was imported. It takes the lock in its first call."""
    running = session.current()
    if running is not None and running.tape_exporter is not None:
        with contextlib.suppress(ImportError):  # then the thread cannot import it either
            running.tape_exporter.prepare_for_eventlet()
