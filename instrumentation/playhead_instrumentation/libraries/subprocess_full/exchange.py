"""Begin the exchange of a child process: the driver decides whether it runs or is replayed."""

from __future__ import annotations

from playhead_core.errors import PlayheadError
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.subprocess.in_full import ProcessBlocked
from playhead_instrumentation.libraries.subprocess.observed import asked
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart
from playhead_instrumentation.libraries.subprocess_full.child import Child
from playhead_instrumentation.libraries.subprocess_full.live_child import LiveChild
from playhead_instrumentation.libraries.subprocess_full.replayed_child import ReplayedChild
from playhead_instrumentation.recorder.exceptions import record_of
from playhead_instrumentation.session.session import Session

log = Log(__name__)


def begin(session: Session, started: ProcessStart) -> Child | None:
    """Open the exchange; None if that failed and the process may start for real.

    Raises `ProcessBlocked` if the tape does not answer and the process may not start.
    """
    try:
        session.settle()
        call = asked(session, started)
    except Exception as problem:
        log.debug("playhead could not record the start of a process", exc_info=True)
        if session.driver.closed:
            raise ProcessBlocked(started.key, "it could not be looked up on the tape") from problem
        return None
    try:
        call.check()
    except PlayheadError as refused:
        call.end("error", None, record_of(refused, str))
        raise ProcessBlocked(started.key, refused.cause or refused.what) from None
    child: Child = call.answer(LiveChild, ReplayedChild, session, started, call)
    child.admit()
    return child
