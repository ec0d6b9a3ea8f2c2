"""The recording of this process, and its end."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider

from playhead_core.facts import ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_core.settings import Settings
from playhead_core.tape.protocols import TapeExporter
from playhead_instrumentation.bootstrap.process_end import ExitStatus
from playhead_instrumentation.bootstrap.sdk.providers import DRAIN_S, Providers
from playhead_instrumentation.libraries.subprocess import child_environment
from playhead_instrumentation.patching.lanes import own_wait
from playhead_instrumentation.patching.notices import Notices
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.recorder.exceptions import name_of
from playhead_instrumentation.session import session
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.calls import Calls, Finish, keep_calls
from playhead_instrumentation.tracing.processor import RecordingProcessor
from playhead_instrumentation.tracing.run_root import ADOPTS_NOT, SERVING, RunRoot
from playhead_semconv import attributes as a

log = Log(__name__)


class Control(Protocol):
    """What lets operators control this process."""

    def used(self, trace_id: bytes, attributes: dict[str, Any], began_ns: int) -> None:
        """A call of a model is over; ``attributes``: of its span."""
        ...

    def close(self) -> None:
        """The process ends: let everything go. Idempotent."""
        ...


class Recording:
    """The recording of this process. Made by `start_recording`."""

    def __init__(self, settings: Settings, notices: Notices) -> None:
        self.settings = settings
        self.notices = notices
        self.tape_exporter: TapeExporter | None = None
        self.session: Session | None = None
        self.root: RunRoot | None = None
        self.processor = RecordingProcessor()
        self.providers = Providers(self.processor, self)
        self.exit_status = ExitStatus()
        self.calls = Calls(self.providers.tracer, self._finisher)
        self.control: Control | None = None
        """What lets operators control this process, if anything does; a command may ask for it later."""
        self._ended = False

    def _finisher(self) -> Finish:
        from playhead_instrumentation.tracing.finish import Finisher

        return Finisher(
            lambda: None if self.session is None else self.session.sink,
            self.settings.span_budget_bytes,
            content=self.settings.content != "metadata",
            scrub=self._scrub,
            told=self._used,
        )

    def _used(self, trace_id: bytes, attributes: dict[str, Any], began_ns: int) -> None:
        if self.control is not None:
            self.control.used(trace_id, attributes, began_ns)

    def open_control(self, by: str = "") -> str:
        """Let operators control this process if it is set, or if ``by`` asks. Return what hinders it."""
        from playhead_instrumentation.control.opening import open_control  # few want it

        running, root, problems = self.session, self.root, list[str]()
        if running is None or root is None:
            return "nothing is recorded"

        def say(problem: str) -> None:
            problems.append(problem)
            self.notices.problem(problem)

        self.control = open_control(running, lambda: root.ids, say, self.drain, by)
        return "; ".join(problems)

    def control_request(self, by: str) -> str:
        """See `playhead_core.tape.protocols.TapeExporter.on_control_request`."""
        if self.control is not None:
            return ""
        if self.settings.control:
            return f"it was started with control {self.settings.control!r}"
        return "its recording has ended" if self._ended else self.open_control(by or "an operator")

    def adopt(self, context: Context | None, kind: trace.SpanKind) -> Context | None:
        """The context in which a span starts: below the run root if it has no parent."""
        if kind in ADOPTS_NOT and (serving := SERVING.get()) is not None:
            return _within_request(serving, context)
        root = self.root
        return context if root is None or self._ended else root.adopt(context, kind)

    def drain(self, timeout_s: float) -> bool:
        """End the spans of finished calls; False where ``timeout_s`` was too short."""
        return self.calls.worker.drain(timeout_s)

    def close(self, provider: TracerProvider) -> None:
        """End the open spans of ``provider``, which exports nothing after its shutdown."""
        processor: Any = getattr(provider, "_active_span_processor", None)
        if self.session is not None and self._ends:
            # At the end of the interpreter, open streams end too; before that, they go on.
            self.session.abandon()
        self.calls.abandon(lambda call: getattr(call.span, "_span_processor", None) is processor)
        self.drain(DRAIN_S)
        root = self.root
        if root is not None and self._ends and self.exit_status.known()[0]:
            root.open(quietly=True)  # now, while its span can still be exported
        if root is not None and getattr(root.span, "_span_processor", None) is processor:
            self._end_root(root, *self.exit_status.known())

    @property
    def _ends(self) -> bool:
        """Whether the interpreter is ending."""
        return not threading.main_thread().is_alive()

    def flush(self, timeout_s: float) -> bool:
        """Deliver everything that has ended so far; False where ``timeout_s`` was too short."""
        drained = self.drain(timeout_s)
        with own_wait():
            return (
                drained
                if self.tape_exporter is None
                else self.tape_exporter.flush(timeout_s) and drained
            )

    @property
    def ended(self) -> bool:
        """Whether the recording has ended."""
        return self._ended

    def end(self) -> None:
        """At a regular exit: end everything open and write the exit fact. Idempotent, never raises."""
        if not self._ended:
            self._stop(*self.exit_status.known())

    def take_off(self) -> None:
        """End the recording at the program's request; the process goes on.

        Patches become transparent, and are removed where nothing has wrapped them since. Idempotent,
        never raises.
        """
        if self._ended:
            return
        self._stop(None, None)
        self.processor.disconnect()
        self.providers.uninstall()
        keep_calls(None)
        child_environment.tell(None)
        PATCHES.undo()

    def _stop(self, code: int | None, error: ErrorRecord | None) -> None:
        try:
            if self.control is not None:
                self.control.close()
            if self.session is not None:
                self.session.abandon()
            self.calls.abandon()
            self.drain(DRAIN_S)
            if self.root is not None:
                self._end_root(self.root, code, error)
            self._ended = True
            self.calls.worker.finish_inline()
            session.stop(code, error)
        except Exception:
            log.debug("playhead could not end in order", exc_info=True)

    def end_worker(self) -> None:
        """End the recording in a `multiprocessing` process, which exits without `atexit`."""
        self.end()
        if self.tape_exporter is not None:
            self.tape_exporter.close(self.settings.exit_flush_ms / 1000)

    def end_at_once(self, status: int) -> None:
        """The process is about to end by `os._exit`. Never raises."""
        self.exit_status.status = status
        self.end_worker()

    def deliver_last(self) -> None:
        """The process is about to be ended by a signal: deliver what there is. Never raises."""
        try:
            self.drain(DRAIN_S)
            if self.session is not None:
                self.session.process.end_by_signal()
            if self.tape_exporter is not None:
                with own_wait():
                    self.tape_exporter.close(self.settings.exit_flush_ms / 1000)
        except Exception:
            log.debug("playhead could not deliver at the end", exc_info=True)

    def _end_root(self, root: RunRoot, code: int | None, error: ErrorRecord | None) -> None:
        if code:
            root.open(quietly=True)  # a failed run reports why, even if nothing else has happened
        attributes, failure = self._at_end(), None
        if error is not None:
            attributes[a.ERROR_TYPE] = name_of(error)
            exits = isinstance(self.exit_status.status, int)
            failure = f"exit status {code}" if exits else self._scrub(error.message)
        root.end(attributes, failure)

    def _at_end(self) -> dict[str, Any]:
        changed = {} if self.session is None else self.session.process.changed()
        return {
            **changed,
            a.PLAYHEAD_RUN_PATCHED: PATCHES.patched(),
            a.PLAYHEAD_RUN_UNPATCHED: PATCHES.unpatched(),
        }

    def _scrub(self, text: str) -> str:
        return text if self.session is None else self.session.redactor.text(text)


def _within_request(serving: trace.Span, context: Context | None) -> Context | None:
    """The context for a framework's own span of a request: below our span if the origin is the same."""
    origin = trace.get_current_span(context).get_span_context()
    ours = serving.get_span_context()
    if origin.is_valid and not (origin.is_remote and origin.trace_id == ours.trace_id):
        return context
    return trace.set_span_in_context(serving, context)
