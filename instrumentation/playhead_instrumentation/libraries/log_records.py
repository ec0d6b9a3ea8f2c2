"""Record the log records of the program, each with the trace and span in which it was made.

`logging.Logger.filter` decides about every record of an enabled level, before the handlers get it: no
handler is needed, and formatters have not changed it yet. A layer around `callHandlers` would be in the
stacks that handlers print. The record is no fact: the tape exporter stores it beside the tape, a replay
compares nothing and stores nothing. A replay describes it, too: the description may read source files,
which are then in the same caches as in the recording.

A loop may log without end. Of one second at most `MOST_RECORDS` and about `MOST_BYTES` are recorded; how
many were not is a log record of its own.
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
import os
import traceback
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry.instrumentation.utils import is_instrumentation_enabled
from opentelemetry.trace import get_current_span

from playhead_core.otlp_bytes import scope_logs
from playhead_core.process.interpreter_threads import get_ident
from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching import at_fork, lanes
from playhead_instrumentation.patching.patches import PATCHES, Patches
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.exceptions import name_of, record_of
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a

log = Log(__name__)

MOST_RECORDS: Final = 1000
"""Log records of one second that are recorded."""
MOST_BYTES: Final = 1 << 20
"""Bytes of records of one second after which no more are recorded."""
LONGEST: Final = 32 * 1024
"""Characters of a message or a stack trace that are recorded."""
LONGEST_VALUE: Final = 4096
"""Characters of a value of ``extra``."""
MOST_VALUES: Final = 32
"""Values of ``extra`` that are recorded."""
MARGIN: Final = 4096
"""Characters after the recorded ones in which the rest of a credential is looked for."""

LEVELS: Final = ((10, 5), (20, 9), (30, 13), (40, 17), (50, 21))
"""Levels of `logging`, and the severity number of OTLP of each."""
OWN: Final = ("playhead", "opentelemetry")
"""Beginnings of the names of loggers whose records are not the program's."""
_STANDARD: Final = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"))
"""Attributes that each `logging.LogRecord` has; others are from ``extra``."""
_INJECTED: Final = "otel"
"""Beginning of the names that OpenTelemetry's instrumentation of `logging` adds: ids of the span."""


def watch(patches: Patches, session: Session) -> None:
    """Record from now on."""
    least = logging.getLevelNamesMapping()[session.settings.log_level.upper()]
    global _recorder
    _recorder = recorder = LogRecorder(session.settings.endpoint, least)
    patches.attempt("logs", lambda: PATCHES.around(logging.Filterer, "filter", _layer))
    session.finishing.append(recorder.report_dropped)
    at_fork.in_child(recorder.forget_dropped)


_recorder: LogRecorder | None = None
"""Of the latest recording. The layer stays for all recordings of the process: one more a recording
would end in a `RecursionError` of the program."""


def _layer(call: Any, logger: Any, record: logging.LogRecord) -> Any:
    """Layer of `filter` of loggers and handlers; it may return another record."""
    passed = call(logger, record)
    if passed and _recorder is not None and isinstance(logger, logging.Logger):
        _recorder.record(logger, passed if isinstance(passed, logging.LogRecord) else record)
    return passed


class _Second:
    """What was logged in one second. Counters are read by taking their next number, which is atomic."""

    __slots__ = ("bytes", "dropped", "ends", "number", "records")

    def __init__(self, number: int) -> None:
        self.number: Final = number
        self.records: Final = itertools.count()
        self.dropped: Final = itertools.count()
        self.ends: Final = itertools.count()
        self.bytes = 0


class LogRecorder:
    """Records log records. It takes no lock: a signal handler or a finalizer may log at any time."""

    def __init__(self, endpoint: str, least: int) -> None:
        """``endpoint``: where the tape goes. ``least``: the lowest level of `logging` to record."""
        self._endpoint = endpoint
        self._least = least
        self._inside: set[int] = set()
        """Threads in which a record is being described: what that logs is not recorded."""
        self._second = _Second(0)
        self._ids = (b"", b"")
        """Of the run in which the last record was dropped."""
        self._session: Session | None = None

    def report_dropped(self) -> None:
        """The recording ends: record how many records of the last second were dropped."""
        try:
            self._report(self._second)
        except Exception:
            log.debug("playhead could not record a log record", exc_info=True)

    def forget_dropped(self) -> None:
        """In a forked child: its parent reports what it dropped."""
        self._second = _Second(0)

    def record(self, logger: logging.Logger, record: logging.LogRecord) -> None:
        """Record what the program logs at this level. Never raises."""
        session, thread = current(), get_ident()
        if session is None or record.levelno < self._least or thread in self._inside:
            return
        if record.name.startswith(OWN):
            return
        if lanes.in_own_thread() or not is_instrumentation_enabled():
            return  # what an exporter logs about its requests
        self._inside.add(thread)
        try:
            self._session = session
            span = get_current_span().get_span_context()
            ids = session.process.run_ids
            if span.is_valid:
                ids = span.trace_id.to_bytes(16, "big"), span.span_id.to_bytes(8, "big")
            if self._may_record(ids) and not is_exported(logger, record.levelno, self._endpoint):
                with lanes.Shadow():  # what a value's `__str__` does is no part of the program
                    described = self._described(session, record)
                # A worker's record that its parent hands to the same loggers is recorded in the worker.
                if record.process in (None, os.getpid()):
                    self._keep(session, record.name, record.levelno, record.levelname, described, ids)
        except Exception:
            log.debug("playhead could not record a log record", exc_info=True)
        finally:
            self._inside.discard(thread)

    def _may_record(self, ids: tuple[bytes, bytes]) -> bool:
        second = self._second
        now = int(REAL.now_s())
        if second.number != now:
            self._second, before = _Second(now), second
            self._report(before)
            second = self._second
        if next(second.records) < MOST_RECORDS and second.bytes < MOST_BYTES:
            return True
        next(second.dropped)
        self._ids = ids
        return False

    def _report(self, second: _Second) -> None:
        dropped = next(second.dropped)
        if dropped and not next(second.ends) and self._session is not None:
            text = f"{dropped} log records were not recorded: too many in one second"
            described = text, {a.PLAYHEAD_LOG_DROPPED: dropped}
            self._keep(self._session, "playhead", logging.WARNING, "WARNING", described, self._ids)

    def _keep(
        self,
        session: Session,
        logger: str,
        level: int,
        level_text: str,
        described: tuple[str | None, dict[str, Any]],
        ids: tuple[bytes, bytes],
    ) -> None:
        if session.tape_exporter is None:
            return
        body, named = described
        entry = scope_logs(
            _name(session.redactor, session.redactor.learned, logger),
            time_ns=REAL.time_ns(),
            level=severity_of(level),
            level_text=level_text,
            body=body,
            named=named,
            trace_id=ids[0],
            span_id=ids[1],
        )
        self._second.bytes += len(entry)
        session.tape_exporter.append_log(entry)

    def _described(
        self, session: Session, record: logging.LogRecord
    ) -> tuple[str | None, dict[str, Any]]:
        """Return message and attributes; without content, only those that are none."""
        redactor = session.redactor
        named: dict[str, Any] = {
            a.CODE_FILE_PATH: _name(redactor, redactor.learned, record.pathname),
            a.CODE_FUNCTION_NAME: record.funcName or "",
            a.CODE_LINE_NUMBER: record.lineno,
        }
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if error is not None:
            found = record_of(error, lambda text: _shortened(session, text))
            named[a.EXCEPTION_TYPE] = name_of(found)
            if redactor.content:
                trace = "".join(traceback.format_exception(error))
                named[a.EXCEPTION_MESSAGE] = found.message
                named[a.EXCEPTION_STACKTRACE] = _shortened(session, trace, end=True)
        if not redactor.content:
            return None, named
        if record.stack_info:
            named[a.CODE_STACKTRACE] = _shortened(session, record.stack_info, end=True)
        named.update(itertools.islice(_extra(session, record), MOST_VALUES))
        return _shortened(session, _message(record)), named


def severity_of(level: int) -> int:
    """Return the severity number of OTLP of a level of `logging`.

    >>> [severity_of(level) for level in (5, 10, 25, 30, 60)]
    [1, 5, 9, 13, 21]
    """
    return next((number for lowest, number in reversed(LEVELS) if level >= lowest), 1)


@functools.lru_cache(500)
def _name(redactor: Redactor, learned: int, text: str) -> str:
    """Return a logger's name or a path without credentials, of which ``learned`` are known."""
    return redactor.text(text)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # the arguments do not fit: handlers report it
        return str(record.msg)


def _extra(session: Session, record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """Yield the values that the program added, without credentials: their names may mark them."""
    for name, value in vars(record).items():
        if name in _STANDARD or name.startswith((_INJECTED, "_")) or value is None:
            continue
        if not isinstance(value, str | bool | int | float):
            value = json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, str):
            value = _shortened(session, value, LONGEST_VALUE)
        yield name, session.redactor.under(name, value)


def _shortened(session: Session, text: str, longest: int = LONGEST, end: bool = False) -> str:
    """Return ``text`` without credentials, and at most ``longest`` characters of it.

    ``end``: those at its end, where a stack trace has the innermost frames.
    """
    size = len(text)
    if size <= longest:
        return session.redactor.text(text)
    if end:
        kept = session.redactor.text(text[-longest - MARGIN :])[-longest:]
        return f"[{size} characters, the last {longest}:] {kept}"
    kept = session.redactor.text(text[: longest + MARGIN])[:longest]
    return f"{kept} [{size} characters, the first {longest}]"


PORTS: Final = frozenset((4317, 4318))
"""Ports of one receiver: OTLP over gRPC and over HTTP."""
_LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))


def is_exported(logger: logging.Logger, level: int, endpoint: str) -> bool:
    """Return whether a handler that gets a record of ``level`` sends it to ``endpoint``."""
    at: logging.Logger | None = logger
    while at is not None:
        for handler in at.handlers:
            if type(handler).__name__ == "LoggingHandler" and level >= handler.level:
                if any(_is_same(one, endpoint) for one in _endpoints(handler)):
                    return True
        at = at.parent if at.propagate else None
    return False


def _endpoints(handler: Any) -> Iterator[str]:
    """Yield the addresses of the exporters of a handler of the SDK, which has no public way to them."""
    provider = getattr(handler, "_logger_provider", None)
    several = getattr(provider, "_multi_log_record_processor", None)
    for processor in getattr(several, "_log_record_processors", ()):
        batches = getattr(processor, "_batch_processor", processor)
        yield str(getattr(getattr(batches, "_exporter", None), "_endpoint", ""))


def _is_same(address: str, endpoint: str) -> bool:
    (host, port), (own_host, own_port) = _host_and_port(address), _host_and_port(endpoint)
    return bool(host) and host == own_host and (port == own_port or {port, own_port} <= PORTS)


def _host_and_port(address: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    return "localhost" if host in _LOCAL else host, port
