"""Start of the recording: opens, patches and connects its parts in the right order.

The order follows from `atexit`, which runs handlers in reverse order of registration. So the tape
exporter is opened before any provider is made. At exit the providers shut down (after late spans were
drained), then the run root ends and the exit fact is written, then the tape exporter delivers. The exit
status of the process is corrected last.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.util._importlib_metadata import (
    entry_points,  # pyright: ignore[reportUnknownVariableType]
)

from playhead_core.boundaries import BOUNDARIES
from playhead_core.errors import ConfigurationError, PlayheadError
from playhead_core.process.own_messages import Log
from playhead_core.rerun.plans import Plan
from playhead_core.settings import RECORDED_BY, Settings
from playhead_core.tape.protocols import Sink, TapeExporter
from playhead_instrumentation.bootstrap.children import (
    Children,
    extracted,
    is_fork_server,
    joins,
    start_in_children,
)
from playhead_instrumentation.bootstrap.compose import open_driver
from playhead_instrumentation.bootstrap.configuration import settings_of_process
from playhead_instrumentation.bootstrap.process_end import end_by_interrupt, watch_exit, watch_signals
from playhead_instrumentation.bootstrap.recording import Recording
from playhead_instrumentation.bootstrap.sdk.adjustments import (
    UNNAMED,
    bound_exporters,
    describe_forks_without_threads,
    name_services,
    separate_span_ids,
)
from playhead_instrumentation.bootstrap.sdk.providers import DRAIN_S, unset_idle
from playhead_instrumentation.libraries.common import installing
from playhead_instrumentation.libraries.subprocess import child_environment
from playhead_instrumentation.libraries.subprocess.child_environment import (
    AGENT,
    EXCHANGE,
    PARENT,
    REPORTED,
)
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.notices import Notices
from playhead_instrumentation.patching.patches import PATCHES, Patches
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.redaction.spans import SpanRedactor
from playhead_instrumentation.session import checks, session
from playhead_instrumentation.session.agent_name import SERVER, named
from playhead_instrumentation.session.environment import revision_of
from playhead_instrumentation.session.options import Rerun, Tracing
from playhead_instrumentation.session.process_facts import Identity, running_program
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.calls import keep_calls
from playhead_instrumentation.tracing.run_root import SERVING, RunOrigin, RunRoot, described
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_core.tape.indexed_tapes import IndexedTape

OUTLETS = "playhead_outlet"
"""Entry point group of tape exporters."""

NAME = "playhead"
"""Name of the instrumentor in ``OTEL_PYTHON_DISABLED_INSTRUMENTATIONS``."""

log = Log(__name__)


class _Process:
    """What is known of the recording of this process."""

    def __init__(self) -> None:
        self.starting = threading.RLock()
        self.recording: Recording | None = None
        self.refused = False
        """Whether invalid settings were already reported."""
        self.fork: Rerun | None = None
        """What the next recording answers from, until the tape ends."""


_PROCESS = _Process()


def current() -> Recording | None:
    """The recording of this process; None when nothing is recorded."""
    return _PROCESS.recording


def start_recording(
    *,
    configure: Callable[[], None] | None = None,
    settings: Settings | None = None,
    sink: Sink | None = None,
    rerun: Rerun | None = None,
    others: Sequence[str] = (),
) -> Recording | None:
    """Record this process from now on. Later calls give the same recording. Never raises.

    ``configure`` sets up the OTel SDK; it is called in any case. ``settings``: by default those of the
    environment and the configuration files. ``sink``: where the facts go; by default through the tape
    exporter. ``rerun``: a replay, whose facts go to a ``sink``, or a fork. ``others``: names of other
    distributions' instrumentors that are about to be loaded.

    None where nothing is to be recorded (``PLAYHEAD_DISABLED``, ``OTEL_SDK_DISABLED``), and where the
    settings are invalid, which is reported.
    """
    if is_fork_server():
        start_in_children(
            partial(start_recording, configure=configure, settings=settings, others=others)
        )
        return None
    with _PROCESS.starting:
        if _PROCESS.recording is not None:
            _configured(configure, _PROCESS.recording.notices)
            return _PROCESS.recording
        if settings is None:
            try:
                settings = settings_of_process()
            except ConfigurationError as problem:
                if sink is None:
                    notices = Notices()
                    if not _PROCESS.refused:
                        _report_once(notices, f"nothing is recorded: {_sentence(problem)}")
                    _PROCESS.refused = True
                    _configured(configure, notices)
                    return None
                settings = Settings()  # a replay gets everything that matters from its launcher
        if PARENT in os.environ:  # the program may read the stderr of its child, and the parent reports
            settings = replace(settings, quiet=True)
        notices = Notices(settings.quiet)
        if settings.disabled or (rerun is None and _switched_off()):
            _configured(configure, notices)
            return None
        _PROCESS.recording = recording = Recording(settings, notices)
        try:
            _start(recording, configure, sink, rerun or _PROCESS.fork, others)
        except Exception as failure:
            log.debug("playhead could not start", exc_info=True)
            _report_once(notices, f"cannot record: {failure}")
        return recording


def _report_once(notices: Notices, problem: str) -> None:
    """Report a problem in the first process alone: a program may read the stderr of its children."""
    if not {PARENT, REPORTED} & os.environ.keys():
        notices.problem(problem)
        os.environ[REPORTED] = "1"


def begin_replay(tape: IndexedTape, origin: str, scratch: str) -> None:
    """In a fork of a waiting process: do the part of `start_recording` that each replay needs itself.

    ``scratch``: an empty folder for its writes. Raises `RuntimeError` where no process waited.
    """
    from playhead_instrumentation.libraries.common import random_state
    from playhead_instrumentation.libraries.files import covered

    recording = _PROCESS.recording
    if recording is None or recording.session is None or recording.root is None:
        raise RuntimeError("no recording has been started")
    running, root = recording.session, recording.root
    root.begin(_links(origin))
    running.begin(tape, scratch, _more_of_start(origin))
    root.name, root.attributes = described(recording.settings.agent, running.process.attributes)
    if running.driver.files is not None:
        covered.answered_by(running)
    random_state.restore(running)
    recording.calls.worker.start()


def fork_of(tape: IndexedTape, plan: Plan) -> None:
    """Make the next recording a fork of ``tape``. It starts at the same moment as any other."""
    _PROCESS.fork = Rerun(tape, plan.origin, plan=plan)


def flush(timeout_s: float = 30.0) -> bool:
    """Deliver everything recorded so far; False if ``timeout_s`` seconds were not enough."""
    recording = _PROCESS.recording
    return True if recording is None else recording.flush(timeout_s)


def _start(
    recording: Recording,
    configure: Callable[[], None] | None,
    sink: Sink | None,
    rerun: Rerun | None,
    others: Sequence[str],
) -> None:
    notices, delivers = recording.notices, sink is None
    PATCHES.on_failure = notices.unpatched
    atexit.register(end_by_interrupt)
    plumbing = Patches()
    plumbing.on_failure = notices.unpatched
    name_services_as = partial(name_services, plumbing, lambda: _agent(recording.settings), _version)
    plumbing.attempt("Resource", name_services_as)
    plumbing.attempt("get_aggregated_resources", partial(describe_forks_without_threads, plumbing))
    redactor = Redactor.of_process(recording.settings)
    if delivers:
        recording.tape_exporter = _open_tape_exporter(recording.settings, redactor, notices)
    if rerun is not None:
        from playhead_instrumentation.libraries.files.scratch import (
            delete_at_exit,  # no recording has it
        )

        delete_at_exit()
    atexit.register(recording.end)
    recording.exit_status.watch()
    if delivers:
        watch_signals(recording.deliver_last)
    watch_exit(recording.end_at_once)
    _record_spans(recording, plumbing)
    _configured(configure, notices)
    recording.providers.ensure()
    if not recording.settings.agent and (agent := _configured_service(recording.settings)):
        recording.settings = replace(recording.settings, agent=agent)
    recording.root = _root(recording, rerun)
    if recording.tape_exporter is not None:
        sink = recording.tape_exporter.sink
        recording.tape_exporter.on_control_request = recording.control_request
    if sink is None:
        installing.watch_clients(PATCHES)
    else:
        recording.session = _session(recording, recording.root, sink, rerun, others, redactor)
        installing.watch(PATCHES, recording.session)
        if recording.settings.workspace != "off" and _is_first(rerun):
            _take_snapshots(recording.session, notices)
        if recording.settings.control and (rerun is None or rerun.plan is not None):
            recording.open_control()
    _watch_children(recording, plumbing)
    if delivers:
        _load_checks(recording.settings, notices)
    if rerun is None or not rerun.is_warm:
        recording.calls.worker.start()


def _is_first(rerun: Rerun | None) -> bool:
    """Whether this is the first process of a run that is recorded, and no replay."""
    return not os.environ.get(PARENT) and (rerun is None or rerun.plan is not None)


def _take_snapshots(running: Session, notices: Notices) -> None:
    """Begin to record the working folder, which is reported where it is not possible."""
    from playhead_instrumentation.session import snapshots  # no recording loads it without the setting

    try:
        snapshots.begin(running)
    except Exception as problem:
        log.debug("no snapshots are taken", exc_info=True)
        notices.problem(f"the working folder is not recorded: {problem}")


def _record_spans(recording: Recording, plumbing: Patches) -> None:
    """Patch the SDK, so that the recording sees all spans."""
    plumbing.attempt("BatchSpanProcessor", bound_exporters)
    recording.providers.install(plumbing)
    separate_span_ids(plumbing)
    keep_calls(recording.calls)


def _root(recording: Recording, rerun: Rerun | None) -> RunRoot:
    """The root of this run; its ids are chosen now."""
    parent, baggage = extracted(os.environ)
    if baggage:
        otel_context.attach(baggage)
    origin = RunOrigin(
        parent,
        joins=parent is not None and joins(os.environ),
        links=_links("" if rerun is None else rerun.origin),
    )
    return RunRoot(
        recording.providers.tracer,
        origin,
        ids=getattr(trace.get_tracer_provider(), "id_generator", None) or RandomIdGenerator(),
        on_open=(lambda: _announce(recording)) if rerun is None else None,
        waits=rerun is not None and rerun.is_warm,
    )


def _session(
    recording: Recording,
    root: RunRoot,
    sink: Sink,
    rerun: Rerun | None,
    others: Sequence[str],
    redactor: Redactor,
) -> Session:
    """Start the session, and connect it with the spans of this process."""
    settings = recording.settings
    tracing = Tracing(recording.providers.tracer, recording.calls.worker.submit)
    if rerun is not None:
        tracing = replace(tracing, context_of=partial(_own_context, recording))
        rerun = replace(rerun, report=recording.notices.problem)
    origin = "" if rerun is None else rerun.origin
    identity = Identity(lambda: root.ids, attributes=_more_of_start(origin, others))
    running = session.start(
        settings,
        sink,
        rerun=rerun,
        identity=identity,
        tracing=tracing,
        redactor=redactor,
        open_driver=open_driver,
    )
    running.here = lambda: trace.get_current_span(recording.adopt(None, trace.SpanKind.INTERNAL))
    running.tape_exporter = recording.tape_exporter
    running.drain = partial(recording.drain, DRAIN_S)
    agent = "" if os.environ.get(PARENT) else settings.agent
    root.name, root.attributes = described(agent, running.process.attributes)
    ended = (
        recording.tape_exporter.span_processor
        if recording.tape_exporter is not None
        else SpanProcessor()
    )
    lane = partial(_lane, running)
    recording.processor.connect(running.sink, lane, ended, running.redactor, checks.look)
    running.driver.unreported = recording.processor.unreported
    return running


def _own_context(recording: Recording, headers: Mapping[str, str]) -> Context:
    """The context of a request: a replay has its own trace, wherever the request came from."""
    return recording.adopt(Context(), trace.SpanKind.INTERNAL) or Context()


def _agent(settings: Settings) -> str:
    """Name of the agent whose run this process is a part of."""
    parent = os.environ.get(AGENT, "").removesuffix(SERVER)
    program = running_program()
    return parent or settings.agent or named(program.script, program.words()).agent


def _configured_service(settings: Settings) -> str:
    """Name of the service that OpenTelemetry's configuration file gives; empty if it gives none."""
    resource = getattr(trace.get_tracer_provider(), "resource", None)
    name = "" if resource is None else str(resource.attributes.get(a.SERVICE_NAME, ""))
    return "" if name.startswith(UNNAMED) or name == _agent(settings) else name


def _version() -> str:
    """The commit that the program is of: of its script's folder, else of the working folder."""
    script = running_program().script
    own = revision_of(Path(script).resolve().parent) if os.path.isfile(script) else ""
    return own or revision_of(Path.cwd())


def _load_checks(settings: Settings, notices: Notices) -> None:
    """Load the files of checks. A file that fails is reported and does not stop the program."""
    try:
        checks.load_all(settings.checks)
    except PlayheadError as problem:
        notices.problem(problem.what)


def _more_of_start(origin: str, others: Sequence[str] = ()) -> dict[str, Any]:
    """Attributes of the process-start fact on the origin of the process and other instrumentors."""
    found: dict[str, Any] = {
        a.PLAYHEAD_RUN_INSTRUMENTORS: list(others),
        a.PLAYHEAD_RUN_ORIGIN: origin,
        a.PLAYHEAD_PROCESS_PARENT_INSTANCE: os.environ.get(PARENT),
        a.PLAYHEAD_PROCESS_PARENT_EXCHANGE: os.environ.get(EXCHANGE),
        a.PLAYHEAD_PROCESS_PARENT_AGENT: os.environ.get(AGENT),
        a.PLAYHEAD_PROCESS_RECORDED_BY: os.environ.get(RECORDED_BY),
    }
    return {name: value for name, value in found.items() if value}


def _lane(running: Session) -> int:
    """Hash of the current lane, which is declared on the tape."""
    lane = lanes.current()
    if lane.declared_on != running.sink.instance:
        running.driver.declare(lane)
    return lane.hash


def _configured(configure: Callable[[], None] | None, notices: Notices) -> None:
    """Set up the SDK. A missing stock exporter stops neither the program nor the recording."""
    if configure is None:
        return
    try:
        configure()
        unset_idle()
    except Exception as problem:
        log.debug("the SDK could not be configured", exc_info=True)
        notices.problem(f"OpenTelemetry could not be set up as configured: {problem}")


def _sentence(problem: PlayheadError) -> str:
    return "; ".join(
        " ".join(part.split()) for part in (problem.what, problem.cause, problem.hint) if part
    )


def _switched_off() -> bool:
    names = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")
    return any(name.strip() in (NAME, "*") for name in names)


def _open_tape_exporter(settings: Settings, redactor: Redactor, notices: Notices) -> TapeExporter | None:
    """The installed tape exporter; None if there is none, or if it fails to open, which is reported."""
    for entry in entry_points(group=OUTLETS):
        try:
            resource = SpanRedactor(redactor).attributes(Resource.create().attributes)
            return entry.load()(dict(resource), settings)
        except Exception as problem:
            log.debug("a tape exporter did not open", exc_info=True)
            notices.problem(f"cannot keep a record, only spans: {problem}")
    return None


def _links(origin: str) -> list[trace.Link]:
    trace_id, _, span_id = origin.partition(":")[0].partition("-")
    try:
        context = trace.SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True)
    except ValueError:
        return []
    return [trace.Link(context)] if context.is_valid else []


def _announce(recording: Recording) -> None:
    root = recording.root
    if root is not None and root.parent is None:
        changed = {} if recording.session is None else recording.session.process.changed()
        attributes = {**root.attributes, **changed}
        recording.notices.recording(
            str(attributes.get(a.PLAYHEAD_RUN_AGENT, "")),
            _libraries(),
            str(attributes.get(a.PLAYHEAD_RUN_LEVEL, "")),
        )


def _libraries() -> list[str]:
    """The patched libraries of the program, without the standard library."""
    patched = set(PATCHES.patched()) - {"runtimes"}
    modules = (module for row in BOUNDARIES if row.name in patched for module, _ in row.on_import)
    tops = dict.fromkeys(module.partition(".")[0] for module in modules if module in sys.modules)
    return [top for top in tops if top not in sys.stdlib_module_names]


def _watch_children(recording: Recording, plumbing: Patches) -> None:
    def context() -> Context | None:
        return recording.adopt(None, trace.SpanKind.INTERNAL)

    def instance() -> bytes:
        return b"" if recording.session is None else recording.session.sink.instance

    def watch_workers(util: ModuleType) -> None:
        def arrange(recording: Recording) -> None:
            util.Finalize(None, recording.end_worker, exitpriority=-100)
            if sys.modules["multiprocessing.process"].current_process().daemon:
                # Workers of a pool are ended by SIGTERM once the last result is there.
                recording.calls.worker.finish_inline()

        util.register_after_fork(recording, arrange)

    def agent() -> str:
        serving: Any = SERVING.get()
        if named := getattr(serving, "attributes", {}).get(a.PLAYHEAD_RUN_AGENT):
            return str(named)
        said = {} if recording.session is None else recording.session.process.attributes
        return str(said.get(a.PLAYHEAD_PROCESS_PARENT_AGENT) or said.get(a.PLAYHEAD_RUN_AGENT, ""))

    def lineage() -> str:
        said = {} if recording.session is None else recording.session.process.attributes
        return str(said.get(a.PLAYHEAD_RUN_LINEAGE, ""))

    whole = recording.root is not None and recording.root.joins
    child_environment.tell(Children(context, instance, agent, whole, lineage))
    plumbing.when_imported("multiprocessing.util", "multiprocessing workers", watch_workers)
