"""The recording of this process: one `Session`, started by the bootstrap, found by everything else.

::

    session.start(settings, outlet=outlet, run=run_root_ids)  # hooks lanes, writes process.start
    boundaries.watch(PATCHES)                                 # patches HTTP, stdout, …
    …
    session.stop(exit_code=0)                                 # writes process.exit

With ``tape`` given, the recorded exchanges of that tape answer, and ``sink`` takes the tape of the
replay; everything else is the same.
"""

from __future__ import annotations

from typing import Any, Literal

from playhead_instrumentation import lanes
from playhead_instrumentation.drivers import open_driver
from playhead_instrumentation.drivers.driver import Driver
from playhead_instrumentation.process_facts import Process, RunIds
from playhead_instrumentation.redaction import Redactor
from playhead_semconv.facts import ErrorRecord
from playhead_semconv.seams import Outlet, Sink, Tape
from playhead_semconv.settings import Settings

Mode = Literal["record", "replay"]


class Session:
    """What records in this process. Immutable but for its end."""

    def __init__(
        self,
        settings: Settings,
        mode: Mode,
        sink: Sink,
        redactor: Redactor,
        driver: Driver,
        process: Process,
        outlet: Outlet | None,
    ) -> None:
        self.settings = settings
        self.mode: Mode = mode
        self.sink = sink
        self.redactor = redactor
        self.driver = driver
        self.process = process
        """Facts of the process: start, heartbeat, exit; `Process.attributes` is for the run root too."""
        self.outlet = outlet


_current: Session | None = None


def current() -> Session | None:
    """The session of this process; None when nothing is recorded."""
    return _current


def start(
    settings: Settings,
    *,
    outlet: Outlet | None = None,
    sink: Sink | None = None,
    tape: Tape | None = None,
    run: RunIds | None = None,
    attributes: dict[str, Any] | None = None,
) -> Session:
    """Start recording: hook lanes, append the process-start fact, start the heartbeat.

    ``sink``: where facts go, by default the outlet's. ``tape``: replay; its exchanges answer.
    ``attributes``: more of the process-start fact (origin, parent instance, …).
    ValueError without a sink and an outlet, RuntimeError when a session is running.
    """
    global _current
    if _current is not None:
        raise RuntimeError("a session is running in this process")
    sink = sink or (outlet.sink if outlet is not None else None)
    if sink is None:
        raise ValueError("a session needs a sink or an outlet")
    redactor = Redactor.of_process(settings)
    driver = open_driver(sink, redactor, tape)
    mode: Mode = "record" if tape is None else "replay"
    process = Process(settings, mode, sink, redactor, run, attributes or {})
    lanes.install()
    process.begin()
    _current = Session(settings, mode, sink, redactor, driver, process, outlet)
    return _current


def stop(exit_code: int | None = None, error: ErrorRecord | None = None) -> None:
    """Append the exit fact and end the session. What is patched stays patched and passes through."""
    global _current
    session, _current = _current, None
    if session is not None:
        session.driver.close()
        session.process.end(exit_code, error)
