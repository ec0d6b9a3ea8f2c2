"""Child processes: started, talked to and waited for; at a replay answered from the tape."""

from __future__ import annotations

from playhead_instrumentation.boundaries import (
    pipe_listeners,
    pipe_locks,
    pipe_messages,
    process_asyncio,
    process_blocked,
    process_calls,
    process_fork,
    process_popen,
    process_pty,
    process_uvloop,
    process_words,
    process_workers,
)
from playhead_instrumentation.patches import Patches
from playhead_instrumentation.session import Session
from playhead_semconv import attributes as a


def watch(patches: Patches, session: Session) -> None:
    """Patch what starts processes; at a replay, block what is not answered."""
    process_words.remember(str(session.process.attributes.get(a.PLAYHEAD_RUN_CWD, "")))
    process_popen.watch(patches)
    process_asyncio.watch(patches)
    process_uvloop.watch(patches)
    process_calls.watch(patches)
    process_fork.watch(patches)
    process_pty.watch(patches)
    process_workers.watch(patches)
    pipe_messages.watch(patches)
    pipe_locks.watch(patches)
    pipe_listeners.watch(patches)
    process_blocked.watch(session)
