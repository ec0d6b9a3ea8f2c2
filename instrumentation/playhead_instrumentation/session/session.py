"""The recording of this process: one `Session`, started by the bootstrap, used by everything else.

::

    session.start(settings, tape_exporter.sink, identity=…)   # opens the driver, writes process.start
    installing.watch(PATCHES, session.current())              # patches what the level asks for
    …
    session.current().abandon()                               # before span processors shut down
    session.stop(exit_code=0)                                 # writes process.exit

With a `Rerun`, the recorded exchanges of its tape answer, and the sink receives the tape of the replay;
everything else is the same.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from opentelemetry import trace

from playhead_core.boundaries import Boundary, at_replay, had, names, selected
from playhead_core.facts import Content, ErrorRecord, Fact
from playhead_core.process.environment import Places, between, folders_of
from playhead_core.settings import Settings
from playhead_core.tape.folds import is_inbound
from playhead_core.tape.protocols import Sink, TapeExporter
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.call import ids_of
from playhead_instrumentation.recorder.options import DriverOptions
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.session.environment import folders, own_folders
from playhead_instrumentation.session.options import Rerun, Tracing, start_of
from playhead_instrumentation.session.process_facts import NO_RUN, Identity, ProcessFacts
from playhead_instrumentation.session.reports import Reports
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.tape.indexed_tapes import IndexedTape
    from playhead_instrumentation.recorder.driver import Driver
    from playhead_instrumentation.tracing.attempts import Attempt


class Open(Protocol):
    """An open exchange."""

    def abandoned(self) -> None:
        """The program reads no further: end the exchange as abandoned."""
        ...


class Snapshots(Protocol):
    """Takes snapshots of the working folder. `session.snapshots` implements it."""

    def ask(self, label: str) -> None:
        """Take one soon."""
        ...

    def close(self) -> None:
        """The process ends: take the last one."""
        ...


class OpenDriver(Protocol):
    """Makes the driver of a process. `bootstrap.compose` implements it."""

    def __call__(
        self,
        options: DriverOptions,
        tape: IndexedTape | None = None,
        scratch: str = "",
        *,
        forked: bool = False,
    ) -> Driver:
        """With a ``tape`` that answers. ``forked``: by a process that is replayed."""
        ...


class Told(msgspec.Struct, frozen=True):
    """How a child process of a replay finds the tape that answers it."""

    variables: Mapping[str, str]
    descriptors: Sequence[int]
    """File descriptors that it inherits."""


class Session:
    """The parts that record in this process."""

    def __init__(
        self,
        settings: Settings,
        options: DriverOptions,
        rerun: Rerun | None,
        identity: Identity,
        tracing: Tracing,
        open_driver: OpenDriver,
    ) -> None:
        tape, scratch = (None, "") if rerun is None else (rerun.tape, rerun.scratch)
        self.settings: Final = settings
        self.redactor: Final = options.redactor
        self._options = options
        self._open_driver = open_driver
        self._scratch = scratch
        self._recorded = frozenset(options.boundaries)
        self.driver = open_driver(options, tape, scratch)
        self.sink: Final = self.driver.sink
        self.reports: Final = Reports()
        """Records decisions, signals and other reports of the program."""
        self.process: Final = ProcessFacts(settings, self.sink, self.redactor, self._level, identity)
        """Facts of the process: start, heartbeat, exit. Its attributes are for the run root too."""
        self.boundaries: Final = boundaries_of(settings, tape)
        """The boundaries that are installed in this process."""
        self.tracer: Final = tracing.tracer
        self.submit: Final = tracing.submit
        self.context_of: Final = tracing.context_of
        self.tape_exporter: TapeExporter | None = None
        """What delivers the facts, if anything does. Set by the caller of `start`."""
        self.snapshots: Snapshots | None = None
        """Takes snapshots of the working folder, where the setting says so."""
        self.on_unclaimed: Callable[[Attempt], None] | None = None
        """Told of each attempt that belongs to no call of an SDK, off the caller's path.

        Over gRPC: of those on a known wire.
        """
        self.on_message: Callable[[Any, bool, bytes, Mapping[str, Any] | None], None] | None = None
        """Told of each message of a WebSocket or of a call over gRPC, in the thread of the program:
        the exchange, whether the program sent it, its bytes and attributes."""
        self.here: Callable[[], trace.Span] = trace.get_current_span
        """Returns the program's current span, or else the run root. Set by the caller of `start`."""
        self.forks: Sequence[IndexedTape] = ()
        """Replay: tapes of forked processes. Set by the caller of `start`."""
        self.drain: Callable[[], object] = lambda: None
        """Ends the spans of finished calls. Set by the caller of `start`."""
        self.for_worker: Callable[[IndexedTape], Told] = lambda _: Told({}, ())
        """Replay: what a process that is started again is told. Set by the caller of `start`."""
        self.open_exchanges: Final[set[Open]] = set()
        """Exchanges that have begun and not ended. Adding and discarding is safe in a finalizer."""
        self._before_asking: list[tuple[Callable[[], None], Sized]] = []
        self.finishing: list[Callable[[], None]] = []
        """Called when the session has ended; they must not raise."""

    @property
    def mode(self) -> str:
        """``record``, ``replay``, ``fork`` or ``resume``."""
        return str(self.process.attributes[a.PLAYHEAD_RUN_MODE])

    @property
    def keeps_copies(self) -> bool:
        """Whether the tape gets copies of states: a replay's origin has them, and metadata are none."""
        return self.mode != "replay" and self.redactor.content

    def has(self, boundary: str) -> bool:
        """Whether the recording (the one being made, or the played one) has a boundary."""
        return boundary in self._recorded

    def before_asking(self, settle: Callable[[], None], pending: Sized = (True,)) -> None:
        """Register ``settle`` to be called before each exchange of the program and at the end.

        ``pending``: empty while it has nothing to do.
        """
        self._before_asking.append((settle, pending))

    def settle(self) -> None:
        """The program is about to open an exchange: record what happened before it."""
        for settle, pending in self._before_asking:
            if pending:
                settle()

    def tell(
        self,
        name: str,
        attributes: dict[str, Any],
        body: Content | None = None,
        *,
        lane: lanes.Lane | None = None,
        span: trace.Span | None = None,
    ) -> int:
        """Append a fact that is no part of an exchange. Returns its number.

        ``lane``, ``span``: by default the current ones.
        """
        lane = lane or lanes.current()
        if lane.declared_on != self.sink.instance:
            self.driver.declare(lane)
        context = (span or self.here()).get_span_context()
        ids = ids_of(context if context.is_valid else None)
        return self.sink.append(
            Fact(REAL.time_ns(), lane.hash, name, *ids, attributes=attributes, body=body)
        )

    def abandon(self) -> None:
        """The process ends: end open exchanges as abandoned, before span processors shut down."""
        for exchange in list(self.open_exchanges):
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
        self._answered_by(tape, "", forked=True)

    def begin(self, tape: IndexedTape, scratch: str, attributes: dict[str, Any]) -> None:
        """This process was forked from a warm process: begin the replay of ``tape``.

        ``attributes``: further attributes of the process-start fact.
        """
        self.redactor.places = _places(tape)
        self._answered_by(tape, scratch)
        self.process.begin(attributes)

    def _answered_by(self, tape: IndexedTape, scratch: str, *, forked: bool = False) -> None:
        """Let ``tape`` answer. Without a ``scratch`` folder it gets one below that of this process."""
        unreported = self.driver.unreported
        below = f"{self._scratch}/{os.getpid()}" if self._scratch else ""
        self.driver = self._open_driver(self._options, tape, scratch or below, forked=forked)
        self.driver.unreported = unreported
        RUNTIME.lane_ended = self.driver.lane_ended

    def _level(self) -> str:
        return self.driver.gate.level

    def forget(self) -> None:
        """After a fork: open exchanges belong to the parent."""
        self.open_exchanges.clear()


_current: Session | None = None


def current() -> Session | None:
    """The session of this process; None if nothing is recorded."""
    return _current


def start(
    settings: Settings,
    sink: Sink,
    *,
    rerun: Rerun | None = None,
    identity: Identity = NO_RUN,
    tracing: Tracing | None = None,
    redactor: Redactor | None = None,
    open_driver: OpenDriver,
) -> Session:
    """Start recording: open the driver, append the process-start fact, start the heartbeat.

    ``sink``: where facts go. ``rerun``: a tape answers. A warm process has no facts before a replay
    begins in a fork of it, with `Session.begin`. ``redactor``: by default a new one.
    ``open_driver``: makes the driver, and that of each fork of this process. RuntimeError if a session
    is running.
    """
    global _current
    if _current is not None:
        raise RuntimeError("a session is running in this process")
    options = _options(settings, sink, rerun, redactor or Redactor.of_process(settings))
    lanes.restart()
    known = _identity(identity, settings, options, rerun)
    session = Session(settings, options, rerun, known, tracing or Tracing(), open_driver)
    if any(row.name == "order" for row in session.boundaries):
        RUNTIME.lane_ended = session.driver.lane_ended
    if rerun is None or not rerun.is_warm:
        session.process.begin()
    _current = session
    _forget_after_fork()
    return session


def _options(settings: Settings, sink: Sink, rerun: Rerun | None, redactor: Redactor) -> DriverOptions:
    """Return the options of this process's driver."""
    if not redactor.content:
        from playhead_instrumentation.redaction.metadata import MetadataSink  # few recordings want it

        sink = MetadataSink(sink, redactor)
    options = DriverOptions(
        sink,
        redactor,
        settings.recording_level,
        names(boundaries_of(settings)) if rerun is None else had(start_of(rerun.tape)),
        settings.file_limit_bytes,
        own_folders(settings),
    )
    if rerun is None:
        return options
    options.redactor.places = _places(rerun.tape)
    return msgspec.structs.replace(options, allowed=rerun.allowed, plan=rerun.plan, report=rerun.report)


def _identity(
    identity: Identity, settings: Settings, options: DriverOptions, rerun: Rerun | None
) -> Identity:
    """``identity``, with what follows from the rerun, the settings and the boundaries."""
    attributes = dict(identity.attributes)
    if lineage := _lineage(settings, rerun):
        attributes[a.PLAYHEAD_RUN_LINEAGE] = lineage
    if claims := _claims(settings, rerun):
        attributes[a.PLAYHEAD_RUN_CLAIMS] = claims
    if rerun is not None and rerun.plan is not None:
        attributes |= _spelt(rerun.tape)
    attributes[a.PLAYHEAD_RUN_BOUNDARIES] = options.boundaries
    mode = "record" if rerun is None else rerun.mode
    return msgspec.structs.replace(identity, mode=mode, attributes=attributes)


def _lineage(settings: Settings, rerun: Rerun | None) -> str:
    """What this run and its retries have in common; empty: its trace."""
    if rerun is None:
        return settings.lineage
    return str(start_of(rerun.tape).get(a.PLAYHEAD_RUN_LINEAGE) or rerun.origin.partition("-")[0])


def _claims(settings: Settings, rerun: Rerun | None) -> str:
    """The receiver at which this run, or its origin, claims; empty: the machine keeps the claims."""
    if rerun is None and not settings.claims:
        return ""
    if rerun is None:
        from playhead_core.claims import place_of_claims  # few claim elsewhere

        return place_of_claims(settings.claims)
    return str(start_of(rerun.tape).get(a.PLAYHEAD_RUN_CLAIMS, ""))


def boundaries_of(settings: Settings, tape: IndexedTape | None = None) -> tuple[Boundary, ...]:
    """The boundaries to install for a recording with these settings, or for the replay of ``tape``."""
    if tape is not None:
        return at_replay(had(start_of(tape)))
    disabled = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    return selected(settings.recording_level, settings.boundaries, map(str.strip, disabled))


def _spelt(tape: IndexedTape) -> dict[str, Any]:
    """What a fork takes from its origin: instance, folders for the spelling of paths, and agent."""
    found = start_of(tape)
    spelt = (a.PLAYHEAD_RUN_CWD, a.PLAYHEAD_RUN_FOLDERS)
    kept = {name: found[name] for name in spelt if name in found}
    for fact in tape.named(e.PLAYHEAD_EXCHANGE_REQUEST):
        if is_inbound(fact) and a.PLAYHEAD_RUN_AGENT in fact.attributes:
            kept[a.PLAYHEAD_RUN_AGENT] = fact.attributes[a.PLAYHEAD_RUN_AGENT]
            break
    return {**kept, a.PLAYHEAD_ORIGIN_INSTANCE: tape.instance.hex()}


def _places(tape: IndexedTape) -> Places:
    """Mapping from the folders of this process to those of the process on ``tape``."""
    recorded: list[str] = start_of(tape).get(a.PLAYHEAD_RUN_FOLDERS) or []
    return between(folders_of(folders(os.getcwd())), folders_of(recorded))


def stop(exit_code: int | None = None, error: ErrorRecord | None = None) -> None:
    """Append the exit fact and end the session. Patches stay and pass calls through."""
    global _current
    session = _current
    if session is None:
        return
    RUNTIME.lane_ended = None
    session.driver.close()
    session.abandon()
    session.settle()
    if session.driver.files is not None:
        session.driver.files.at_end()
    if session.snapshots is not None:
        session.snapshots.close()
    if session.driver.killed is not None:
        session.driver.killed()
    _current = None
    session.process.end(exit_code, error)
    while session.finishing:
        session.finishing.pop()()


@functools.cache
def _forget_after_fork() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _current and _current.forget())
