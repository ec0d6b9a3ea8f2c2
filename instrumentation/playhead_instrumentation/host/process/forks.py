"""``os.fork``, and code that forks through it (`multiprocessing`): the child has a tape of its own.

For the parent the child is a process like any other. A replay forks for real, and the child continues
with its own tape. Data in pipes between the two is left to them.
"""

from __future__ import annotations

from typing import Any

from playhead_instrumentation.boundaries import random_state
from playhead_instrumentation.boundaries.process.words import FORK, Started
from playhead_instrumentation.boundaries.recording import recording
from playhead_instrumentation.driver.verdict import Live, Played, Verdict
from playhead_instrumentation.host.files import covered
from playhead_instrumentation.host.process.exchange import begin
from playhead_instrumentation.runtime.lanes import Shadow
from playhead_instrumentation.session.session import Session
from playhead_semconv.tape.indexed_tapes import IndexedTape


def fork(original: Any) -> int:
    """See `os.fork`."""
    session = recording()
    child = None if session is None else begin(session, Started(FORK, ()))
    if session is None or child is None:
        return original()
    played = child.played
    tape = _tape_of(session, child.call.verdict)
    if played is not None and played.exchange.head and tape is None and not child.needs_nobody():
        child.block("the child that was forked then has no tape")
    if played is not None and tape is None:
        return child.start_again()  # raises the recorded error
    origin = "" if tape is None else tape.instance.hex()
    try:
        # Fork hooks of other libraries (OpenTelemetry describes the process anew) are not the program's.
        with session.process.forks(str(child.call.id), origin), Shadow():
            pid = original()
    except BaseException as error:
        child.failed(error)
        raise
    if pid:
        if played is None:
            child.started(pid)
            return pid
        child.beside = pid
        return child.start_again()
    if tape is not None:
        session.become(tape)
        covered.answered_by(session)
    random_state.restore(session)  # Python reseeds its generator
    return 0


def _tape_of(session: Session, verdict: Verdict) -> IndexedTape | None:
    """The tape of the process that was forked then; it may continue after the end of its parent's."""
    if isinstance(verdict, Played):
        return session.fork_of(verdict.instance, str(verdict.exchange.id))
    if isinstance(verdict, Live) and verdict.instead_of is not None:
        return session.fork_of(verdict.instance, str(verdict.instead_of.id))
    return None
