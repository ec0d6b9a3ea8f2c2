"""Libraries that hold the lock of all imports, and threads of ours that would import beside them.

eventlet holds the interpreter's own import lock while it imports modules anew. A thread in the midst of
an import needs that lock for the next one; where eventlet wants the same module, each waits for the
other for ever. So our threads have nothing left to import by then.
"""

from __future__ import annotations

import contextlib
from types import ModuleType

from playhead_instrumentation.session import session


def before_eventlet(module: ModuleType) -> None:
    """``eventlet.patcher`` has been imported, and holds the lock from its first call on."""
    running = session.current()
    if running is not None and running.outlet is not None:
        with contextlib.suppress(ImportError):  # then the thread does not get further either
            running.outlet.import_all()
