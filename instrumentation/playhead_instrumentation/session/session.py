"""The recording of this process: one `Session`, started by the bootstrap, used by everything else.

::

    session.start(settings, outlet=outlet, run=run_root_ids)  # opens the driver, writes process.start
    installing.watch(PATCHES, session.current())              # patches what the level asks for
    …
    session.current().abandon()                               # before span processors shut down
    session.stop(exit_code=0)                                 # writes process.exit

With ``tape``, the recorded exchanges of that tape answer, and ``sink`` receives the tape of the replay;
everything else is the same.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Tracer

from playhead_instrumentation.driver.allowed import NOTHING, Allowed
from playhead_instrumentation.driver.driver import Driver
from playhead_instrumentation.driver.opening import Opening
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.session.opening import open_driver
from playhead_instrumentation.session.process_facts import Process, RunIds
from playhead_instrumentation.session.surroundings import folders, own_folders
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.boundaries import Boundary, at_replay, had, names, selected
from playhead_semconv.facts import ErrorRecord
from playhead_semconv.process.moved_folders import Places, between, folders_of
from playhead_semconv.rerun.plans import Plan
from playhead_semconv.settings import Settings
from playhead_semconv.tape.folds import is_inbound
from playhead_semconv.tape.protocols import Outlet, Sink

if TYPE_CHECKING:
    from playhead_semconv.tape.indexed_tapes import IndexedTape


class Job(Protocol):
    """Work that is done once, off the caller's path."""

    def finish(self) -> None:
        """Do it."""
        ...


class Open(Protocol):
    """An open exchange."""

    def abandoned(self) -> None:
        """The program reads no further: end the exchange as abandoned."""
        ...


@dataclass(frozen=True, slots=True)
class Told:
    """How a child process of a replay finds the tape that answers it."""

    variables: Mapping[str, str]
    descriptors: Sequence[int]
    """File descriptors that it inherits."""


class Session:
    """The parts that record in this process."""

    def __init__(
        self,
        settings: Settings,
        sink: Sink,
        redactor: Redactor,
        driver: Driver,
        process: Process,
        boundaries: Sequence[Boundary],
        recorded: Collection[str],
        outlet: Outlet | None,
        tracer: Callable[[], Tracer],
        submit: Callable[[Job], None],
        context_of: Callable[[Mapping[str, str]], Context],
    ) -> None:
        self.settings: Final = settings
        self.sink: Final = sink
        self.redactor: Final = redactor
        self.driver = driver
        self.process: Final = process
        """Facts of the process: start, heartbeat, exit; `Process.attributes` is for the run root too."""
        self.boundaries: Final = boundaries
        """The boundaries that are installed in this process."""
        self._recorded = frozenset(recorded)
        self.outlet: Final = outlet
        self.tracer: Final = tracer
        """Returns the tracer for spans of attempts."""
        self.submit: Final = submit
        """Submits work to be done off the caller's path. Safe in a finalizer."""
        self.context_of: Final = context_of
        """The context in which a request that came with these headers (lower case) is served."""
        self.reopened: Callable[[IndexedTape, str], Driver] = lambda tape, folder: driver
        """Makes the driver of a forked child at a replay, from the tape that answers it and an empty
        scratch folder; without a folder it gets one below that of this process. Set by `start`."""
        self.here: Callable[[], trace.Span] = trace.get_current_span
        """Returns the program's current span, or else the run root. Set by the caller of `start`."""
        self.forks: Sequence[IndexedTape] = ()
        """Replay: tapes of forked processes. Set by the caller of `start`."""
        self.for_worker: Callable[[IndexedTape], Told] = lambda _: Told({}, ())
        """Replay: what a process that is started again is told. Set by the caller of `start`."""
        self._open: set[Open] = set()
        self._before_asking: list[Callable[[], None]] = []

    @property
    def mode(self) -> str:
        """``record``, ``replay``, ``fork`` or ``resume``."""
        return str(self.process.attributes[a.PLAYHEAD_RUN_MODE])

    def has(self, boundary: str) -> bool:
        """Whether the recording (the one being made, or the played one) has a boundary."""
        return boundary in self._recorded

    def before_asking(self, settle: Callable[[], None]) -> None:
        """Register ``settle`` to be called before each exchange of the program and at the end."""
        self._before_asking.append(settle)

    def settle(self) -> None:
        """The program is about to open an exchange: record what happened before it."""
        for settle in self._before_asking:
            settle()

    def opened(self, exchange: Open) -> None:
        """An exchange was opened."""
        self._open.add(exchange)

    def closed(self, exchange: Open) -> None:
        """An exchange has ended. Safe in a finalizer."""
        self._open.discard(exchange)

    def abandon(self) -> None:
        """The process ends: end open exchanges as abandoned, before span processors shut down."""
        for exchange in list(self._open):
            exchange.abandoned()

    def fork_of(self, instance: bytes, exchange: str) -> IndexedTape | None:
        """The tape of the process that a recorded instance forked in ``exchange``, or None."""
        wanted = instance.hex(), exchange
        for tape in self.forks:
            at = next(tape.facts()).attributes
            named = a.PLAYHEAD_PROCESS_PARENT_INSTANCE, a.PLAYHEAD_PROCESS_PARENT_EXCHANGE
            if tuple(at.get(name) for name in named) == wanted:
                return tape
        return None

    def become(self, tape: IndexedTape) -> None:
        """This process is a forked child at a replay: let its own ``tape`` answer."""
        from playhead_instrumentation.playback.opening import dies_with, ends_at_standstill

        self._answered_by(tape, "")
        dies_with(self.driver, tape)
        ends_at_standstill(self.driver, tape)

    def begin(self, tape: IndexedTape, scratch: str, attributes: dict[str, Any]) -> None:
        """This process was forked from a warm process: begin the replay of ``tape``.

        ``attributes``: further attributes of the process-start fact.
        """
        self.redactor.places = _places(tape)
        self._answered_by(tape, scratch)
        self.process.begin(attributes)

    def _answered_by(self, tape: IndexedTape, scratch: str) -> None:
        untold = self.driver.untold
        self.driver = self.reopened(tape, scratch)
        self.driver.untold = untold
        lanes.on_end(self.driver.lane_ended)

    def forget(self) -> None:
        """After a fork: open exchanges belong to the parent."""
        self._open.clear()


_current: Session | None = None


def current() -> Session | None:
    """The session of this process; None if nothing is recorded."""
    return _current


def start(
    settings: Settings,
    *,
    outlet: Outlet | None = None,
    sink: Sink | None = None,
    tape: IndexedTape | None = None,
    run: RunIds | None = None,
    attributes: dict[str, Any] | None = None,
    allowed: Allowed = NOTHING,
    plan: Plan | None = None,
    say: Callable[[str], None] = lambda text: None,
    tracer: Callable[[], Tracer] | None = None,
    submit: Callable[[Job], None] | None = None,
    context_of: Callable[[Mapping[str, str]], Context] | None = None,
    scratch: str = "",
    waits: bool = False,
) -> Session:
    """Start recording: open the driver, append the process-start fact, start the heartbeat.

    ``sink``: where facts go, by default the outlet's. ``tape``: replay; its exchanges answer.
    ``allowed``: what a replay may do for real. ``plan``: of a fork, which goes on live behind the tape;
    ``say`` is called with the place where it leaves the tape.
    ``attributes``: further attributes of the process-start fact (origin, parent instance, …).
    ``tracer``: by default of the global provider. ``submit``: by default jobs are done immediately.
    ``context_of``: by default the trace that the headers name is continued.
    ``scratch``: an empty folder for what a replay writes. ``waits``: this is a warm process without
    facts; a replay begins in a fork of it, with `Session.begin`.
    ValueError without a sink and an outlet, RuntimeError if a session is running.
    """
    global _current
    if _current is not None:
        raise RuntimeError("a session is running in this process")
    sink = sink or (outlet.sink if outlet is not None else None)
    if sink is None:
        raise ValueError("a session needs a sink or an outlet")
    redactor = Redactor.of_process(settings)
    if tape is not None:
        redactor.places = _places(tape)
    lanes.restart()
    rows = boundaries_of(settings, tape)
    recorded = names(rows) if tape is None else had(_start_of(tape))
    opening = Opening(
        sink,
        redactor,
        settings.recording_level,
        recorded,
        settings.file_limit_bytes,
        own_folders(settings),
        allowed,
        plan,
        say,
    )

    def opened(tape: IndexedTape | None, scratch: str) -> Driver:
        return open_driver(opening, tape, scratch)

    driver = opened(tape, scratch)
    sink = driver.sink
    mode = "record" if tape is None else "replay" if plan is None else plan.mode
    if tape is not None and plan is not None:
        attributes = {**(attributes or {}), **_spelt(tape)}
    attributes = {**(attributes or {}), a.PLAYHEAD_RUN_BOUNDARIES: recorded}

    made: Session | None = None

    def level() -> str:
        return (driver if made is None else made.driver).gate.level

    process = Process(settings, mode, level, sink, redactor, run, attributes)
    if any(row.name == "order" for row in rows):
        lanes.on_end(driver.lane_ended)
    if not waits:
        process.begin()
    _current = made = Session(
        settings,
        sink,
        redactor,
        driver,
        process,
        rows,
        recorded,
        outlet,
        tracer or (lambda: trace.get_tracer("playhead")),
        submit or (lambda job: job.finish()),
        context_of or (lambda headers: propagate.extract(headers, context=Context())),
    )
    _current.reopened = lambda tape, own: opened(tape, own or (scratch and f"{scratch}/{os.getpid()}"))
    _forget_after_fork()
    return _current


def boundaries_of(settings: Settings, tape: IndexedTape | None = None) -> tuple[Boundary, ...]:
    """The boundaries to install for a recording with these settings, or for the replay of ``tape``."""
    if tape is not None:
        return at_replay(had(_start_of(tape)))
    disabled = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    return selected(settings.recording_level, settings.boundaries, map(str.strip, disabled))


def _start_of(tape: IndexedTape) -> Mapping[str, Any]:
    """Attributes of the process-start fact."""
    start = next(tape.facts(), None)
    return {} if start is None else start.attributes


def _spelt(tape: IndexedTape) -> dict[str, Any]:
    """What a fork takes from its origin: instance, folders for the spelling of paths, and agent."""
    found = _start_of(tape)
    spelt = (a.PLAYHEAD_RUN_CWD, a.PLAYHEAD_RUN_FOLDERS)
    kept = {name: found[name] for name in spelt if name in found}
    for fact in tape.named(e.PLAYHEAD_EXCHANGE_REQUEST):
        if is_inbound(fact) and a.PLAYHEAD_RUN_AGENT in fact.attributes:
            kept[a.PLAYHEAD_RUN_AGENT] = fact.attributes[a.PLAYHEAD_RUN_AGENT]
            break
    return {**kept, a.PLAYHEAD_ORIGIN_INSTANCE: tape.instance.hex()}


def _places(tape: IndexedTape) -> Places:
    """Mapping from the folders of this process to those of the process on ``tape``."""
    recorded: list[str] = _start_of(tape).get(a.PLAYHEAD_RUN_FOLDERS) or []
    return between(folders_of(folders(os.getcwd())), folders_of(recorded))


def stop(exit_code: int | None = None, error: ErrorRecord | None = None) -> None:
    """Append the exit fact and end the session. Patches stay and pass calls through."""
    global _current
    session = _current
    if session is None:
        return
    lanes.on_end(None)
    session.driver.close()
    session.abandon()
    session.settle()
    if session.driver.files is not None:
        session.driver.files.at_end()
    if session.driver.killed is not None:
        session.driver.killed()
    _current = None
    session.process.end(exit_code, error)


@functools.cache
def _forget_after_fork() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _current and _current.forget())
