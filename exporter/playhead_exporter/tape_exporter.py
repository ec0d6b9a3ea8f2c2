"""The tape exporter of an agent process: a spool, and the threads that empty it."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from playhead_core.otlp_bytes import attributes, field
from playhead_core.process.interpreter_threads import Thread
from playhead_core.settings import Settings, resolve
from playhead_core.tape.frames import LogEntry, SpanRecord
from playhead_core.tape.plain_facts import storable_text
from playhead_exporter.delivery import DeliveryNotices
from playhead_exporter.encoded import encode_span
from playhead_exporter.shipping.kind import EndpointKind
from playhead_exporter.shipping.reporting import Rejected, Reporting
from playhead_exporter.shipping.shipper import Route, Shipper
from playhead_exporter.shipping.transports import import_all, transport_opener
from playhead_exporter.spool.active_segment import ActiveSegment, BackgroundThreads
from playhead_exporter.spool.control_request import ControlRequest
from playhead_exporter.spool.copier import Copier, Write
from playhead_exporter.spool.folders import DiskBudget, SpoolFolders
from playhead_exporter.spool.segments import LiveSegments, Position
from playhead_exporter.spool.spool import Spool

FIRST_MEETING_S = 1.0
"""Age of a process in seconds after which close no longer waits for an endpoint that never answered."""
DISK_AT_EXIT_S = 0.05
"""Seconds that close waits for the disk if something is left: shared memory outlives the process."""
SYNC_DEADLINE_S = 1.0
"""With ``PLAYHEAD_SPOOL_SYNC=always``: seconds an append waits for the disk before that is a stall."""


class SpoolTapeExporter:
    """Sends the records of an agent process; a `playhead_core.tape.protocols.TapeExporter`."""

    def __init__(
        self,
        settings: Settings,
        resource: Mapping[str, Any],
        folders: SpoolFolders | None = None,
        write: Write = os.pwrite,
    ) -> None:
        """Opens nothing yet: files and threads are created with the first fact.

        ``write`` writes bytes into a segment. Raises `ConfigurationError` if the settings are invalid.
        """
        self._settings = settings
        self._folders = folders or SpoolFolders.of(settings)
        self._write = write
        self.notices = DeliveryNotices(settings.quiet)
        self.on_control_request: Callable[[str], str] = _not_controllable
        """See `playhead_core.tape.protocols.TapeExporter.on_control_request`."""
        endpoint, self._open_transport = transport_opener(settings)
        self._endpoint = endpoint
        self._kind = EndpointKind(endpoint, settings.endpoint_kind, self._folders.spool)
        self._begun: bytes = b""
        self._copier: Copier | None = None
        self._shipper: Shipper | None = None
        self._closed = False
        self._nothing_left = True
        plain = plain_resource(resource)
        self._resource_field = field(1, attributes(1, plain))
        self.sink = Spool(
            self._folders,
            plain,
            memory_bytes=settings.spool_memory_bytes,
            threads=BackgroundThreads(
                begin=self._begin,
                wake_copier=self._wake_copier,
                news=self._on_news,
                after_append=self._wait_for_disk if settings.spool_sync == "always" else None,
                disk_stalled=self._disk_problem,
                await_room=self._await_room,
            ),
        )
        self.span_processor = SpoolSpanProcessor(
            self.sink.append_span, self._kind.whole, self.flush, self.notices
        )

    def append_log(self, scope_logs: bytes) -> None:
        """See `playhead_core.tape.protocols.TapeExporter.append_log`."""
        self.sink.append_log(LogEntry(self._resource_field + field(2, scope_logs)))

    @property
    def shipper(self) -> Shipper | None:
        """The thread that delivers; None before the first fact."""
        return self._shipper

    @property
    def disk_problem(self) -> str:
        """Why the spool's disk cannot be written now; empty if it can."""
        return self._disk_problem()

    def prepare_for_eventlet(self) -> None:
        """See `playhead_core.tape.protocols.TapeExporter.prepare_for_eventlet`."""
        import_all(self._endpoint)
        self.on_control_request = _not_among_greenlets

    def flush(self, timeout_s: float) -> bool:
        """Deliver all current records. False as soon as an attempt fails, or after ``timeout_s``."""
        shipper = self._current_shipper()
        if shipper is None:
            return True
        mark = self._mark()
        return self._nothing_left if mark is None else shipper.flush(mark, timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Deliver and stop; True if nothing is left. Idempotent.

        Waits at most ``timeout_s``, and only for an endpoint that answers. What remains is in the spool;
        the next process, or ``playhead spool push``, sends it from there. Facts that are appended later
        are kept, too.
        """
        shipper, copier = self._current_shipper(), self._copier
        if shipper is None or copier is None or self._closed:
            return self._nothing_left
        self._closed = True
        deadline = time.monotonic() + timeout_s
        if shipper.is_accepting is None:
            shipper.wait_for_answer(min(timeout_s, FIRST_MEETING_S))
        delivered = False
        if shipper.is_accepting:
            delivered = shipper.flush(self._mark(), timeout_s)
            if delivered:
                shipper.flush(None, max(0.0, deadline - time.monotonic()), left=True)
        if not delivered:
            copier.flush(min(timeout_s, DISK_AT_EXIT_S))
        mark = self.sink.retire()
        shipper.stop(DISK_AT_EXIT_S)
        self._nothing_left = mark is None or shipper.position >= mark
        # The spool of a process that has delivered all is removed, which needs the end of the copier.
        left_s = deadline - time.monotonic() if self._nothing_left else 0.0
        copier.stop(max(DISK_AT_EXIT_S, left_s))
        if self._nothing_left and not copier.thread.is_alive():
            self.sink.clear()
        return self._nothing_left

    def _begin(self) -> None:
        """The first fact of a process instance is about to be written: start its threads."""
        budget = DiskBudget(self._folders.spool, self._settings.spool_budget_bytes)
        self._begun = self.sink.instance
        self._closed = False
        self._nothing_left = True
        self._copier = Copier(
            self.sink,
            budget,
            self.notices,
            sync=self._settings.spool_sync == "always",
            write=self._write,
            look=partial(self._look, ControlRequest(self._folders, self._begun)),
        )
        self._shipper = Shipper(
            self._folders,
            Route(
                self._open_transport,
                self._kind.on_about if self._kind.asks else None,
                self._settings.export_interval_ms / 1000,
            ),
            Reporting(Rejected(self._folders.spool, budget, self.notices), self.notices),
            live=LiveSegments(self.sink),
        )
        with contextlib.suppress(RuntimeError):  # shutdown: the next process delivers
            self._copier.start()
            self._shipper.start()

    def _look(self, request: ControlRequest) -> None:
        """Switch control on if that is requested, in another thread: it imports many modules."""
        by = request.taken()
        if by is not None:
            with contextlib.suppress(RuntimeError):  # shutdown
                Thread("playhead-control", partial(self._control, request, by)).start()

    def _control(self, request: ControlRequest, by: str) -> None:
        try:
            refusal = self.on_control_request(by)
        except Exception as problem:
            refusal = repr(problem)
        if refusal:
            with contextlib.suppress(OSError):  # the command then reports that there is no answer
                request.refuse(refusal)

    def _current_shipper(self) -> Shipper | None:
        """Return the shipper of this process; None in a forked child that has recorded nothing yet."""
        return self._shipper if self._begun == self.sink.instance else None

    def _mark(self) -> Position | None:
        active = self.sink.current
        return None if active is None else Position(active.number, active.written)

    def _wake_copier(self) -> None:
        if self._copier is not None:
            self._copier.wake()

    def _on_news(self) -> None:
        if self._copier is not None:
            self._copier.news()
        if self._shipper is not None:
            self._shipper.news()

    def _disk_problem(self) -> str:
        return "" if self._copier is None else self._copier.stalled()

    def _await_room(self, timeout_s: float) -> bool:
        return self._copier is not None and self._copier.await_room(timeout_s)

    def _wait_for_disk(self, active: ActiveSegment, upto: int) -> None:
        if self._copier is not None:
            self._copier.wait(active, upto, SYNC_DEADLINE_S)


def open_tape_exporter(resource: dict[str, Any], settings: Settings | None = None) -> SpoolTapeExporter:
    """Entry point: return the tape exporter of this process. It is closed automatically at exit.

    ``settings``: by default those of the environment. Raises `ConfigurationError` if they are invalid.
    """
    settings = settings or resolve(os.environ).settings
    tape_exporter = SpoolTapeExporter(settings, resource)
    close: Callable[[float], bool] = tape_exporter.close
    atexit.register(close, settings.exit_flush_ms / 1000)
    return tape_exporter


def _not_controllable(by: str) -> str:
    return "nothing in it is recorded that could be controlled"


def _not_among_greenlets(by: str) -> str:
    return "it uses eventlet, which needs control from the start"


def plain_resource(resource: Mapping[str, Any]) -> dict[str, str | int | float | bool | list[str]]:
    """Return resource attributes as the header of a tape holds them."""
    return {
        storable_text(str(key)): _plain(value) for key, value in resource.items() if value is not None
    }


def _plain(value: Any) -> str | int | float | bool | list[str]:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [storable_text(str(item)) for item in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return storable_text(str(value))


class SpoolSpanProcessor(SpanProcessor):
    """Keeps every finished span, sampled or not, as one `SpanRecord`.

    A span that names the exchange from which its messages can be derived leaves them out, unless
    ``whole()``: then the endpoint is known not to derive them.
    """

    def __init__(
        self,
        keep: Callable[[SpanRecord], None],
        whole: Callable[[], bool],
        flush: Callable[[float], bool],
        notices: DeliveryNotices,
    ) -> None:
        self._keep = keep
        self._whole = whole
        self._flush = flush
        self._notices = notices

    def on_end(self, span: ReadableSpan) -> None:
        """Encode the span and append it to the spool. Never raises."""
        try:
            self._keep(SpanRecord(encode_span(span, self._whole())))
        except (
            Exception
        ) as problem:  # telemetry never hurts the agent, whatever an attribute's class does
            self._notices.say(f"span {type(problem)}", f"a span could not be stored: {problem!r}")

    def shutdown(self) -> None:
        """No-op: spooled records are safe, and more may come."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Deliver all current records; False if that failed."""
        return self._flush(timeout_millis / 1000)
