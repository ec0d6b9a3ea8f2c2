"""Record ``os.fork`` and code that forks through it (`multiprocessing`): the child has its own tape.

For the parent the child is a process like any other. A replay forks for real, and the child continues
with its own tape. Data in pipes between the two is left to them.
"""

from __future__ import annotations

from typing import Any

from playhead_instrumentation.libraries.common import random_state
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.files import covered
from playhead_instrumentation.libraries.subprocess.process_start import FORK, ProcessStart
from playhead_instrumentation.libraries.subprocess_full.child import Child
from playhead_instrumentation.libraries.subprocess_full.exchange import begin
from playhead_instrumentation.libraries.subprocess_full.live_child import LiveChild
from playhead_instrumentation.libraries.subprocess_full.replayed_child import ReplayedChild
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.session.session import Session


def fork(original: Any) -> int:
    """See `os.fork`."""
    session = recording()
    child = None if session is None else begin(session, ProcessStart(FORK, ()))
    if session is None or child is None:
        return original()
    return child.answer(_fork, _fork_again, session, original)


def _fork(child: LiveChild, session: Session, original: Any) -> int:
    pid = _forked(child, session, original)
    if pid:
        child.started(pid)
    return pid


def _fork_again(child: ReplayedChild, session: Session, original: Any) -> int:
    if child.tape() is None:
        if child.played.exchange.head and not child.is_complete():
            child.block("the child that was forked then has no tape")
        return child.start_again()  # raises the recorded error
    pid = _forked(child, session, original)
    if not pid:
        return 0
    child.beside = pid
    return child.start_again()


def _forked(child: Child, session: Session, original: Any) -> int:
    """Fork. The new process is answered by its own tape, if there is one."""
    tape = child.tape()
    origin = "" if tape is None else tape.instance.hex()
    try:
        # Fork hooks of other libraries (OpenTelemetry re-reads the process) are not the program's.
        with session.process.forks(str(child.call.id), origin), Shadow():
            pid = original()
    except BaseException as error:
        child.failed(error)
        raise
    if not pid:
        if tape is not None:
            session.become(tape)
            covered.answered_by(session)
        random_state.restore(session)  # Python reseeds its generator
    return pid
