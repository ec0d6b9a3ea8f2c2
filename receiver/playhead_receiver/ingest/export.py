"""Intake for both transports: decodes a request to a batch, stores the batch, makes the answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from playhead_core.errors import MalformedOtlp, StoreError
from playhead_core.facts import Fact
from playhead_core.integrity import Link
from playhead_core.otlp import (
    instance_of,
    is_fact,
    is_window,
    set_attributes,
    unpack_record,
    unpack_window,
)
from playhead_core.tape.fact_shapes import check_shape
from playhead_receiver.ingest.budget import Budget
from playhead_receiver.ingest.log_records import is_part, read_log
from playhead_receiver.ingest.reading_process import SpanReadingProcess
from playhead_receiver.ingest.spans import Rejections, check_scope, read_envelope, read_spans
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.spans.span_view import Envelope, request_of, surroundings
from playhead_receiver.storage.values.stored import Batch, ReadLog, ReadSpan
from playhead_receiver.storage.writing.prepare import Prepared
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_receiver.ingest.checkpoint_parts import CheckpointPart, CheckpointParts

log = logging.getLogger(__name__)
T = TypeVar("T")
Signal: TypeAlias = Literal["traces", "logs", "metrics"]

MOST_WINDOWS = 16
"""Most windows in one request, because a window may expand to a thousand times its size."""

REQUESTS: dict[Signal, type[Message]] = {
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}

PassOn: TypeAlias = Callable[[Signal, bytes], bool]
"""Receives an export request of metrics, or of log records that are no facts, in its binary form.

Returns whether it takes this signal.
"""


@dataclass(slots=True)
class Acknowledgement:
    """The answer to a readable request: everything is stored except ``rejected`` items."""

    message: Message
    rejected: int = 0


@dataclass(slots=True)
class Counted:
    """Counts of what arrived since the receiver started."""

    spans: int = 0
    facts: int = 0
    log_records: int = 0
    """Log records that are no facts of a tape."""
    logs_stored: int = 0
    """Those of them that were stored with their run."""
    logs_dropped: int = 0
    """Those of them that belong to no run and were not forwarded either."""
    checkpoints_joined: int = 0
    """Checkpoints that were stored from log records in parts."""
    checkpoints_refused: int = 0
    """Checkpoints whose parts were complete and could not be stored."""
    metrics: int = 0
    """Metrics: passed on, not stored."""
    rejected: int = 0
    refused: int = 0
    """Requests that the store did not accept; their senders send them again."""
    refusal: tuple[StoreError, float] | None = None
    """The error of the last refused request, and when (monotonic); None after a successful one."""
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


def _of_spans(spans: list[ReadSpan]) -> Batch:
    return Batch(spans=spans)


class _Windows:
    """Reads the windows of one request."""

    def __init__(self) -> None:
        self._count = 0
        self.spans: list[ReadSpan] = []
        self.entries: list[Any] = []
        """`ResourceLogs` of the program's log records."""
        self.links: list[Link] = []

    def read(self, record: LogRecord, instance: bytes | None, rejections: Rejections) -> list[Fact]:
        """The facts of a window; its other records are added here. `MalformedOtlp` if unreadable."""
        self._count += 1
        if self._count > MOST_WINDOWS:
            raise MalformedOtlp(f"more than {MOST_WINDOWS} windows in one request")
        window = unpack_window(record, instance)
        self.links += window.links
        for problem in window.problems:
            rejections.add(problem)
        for otlp in window.spans:
            try:
                spans, rejected = read_spans(_named(otlp, instance))
            except MalformedOtlp as problem:
                rejections.add(problem)
                continue
            self.spans += spans
            rejections.join(rejected)
        for otlp in window.logs:
            try:
                self.entries += read_envelope(request_of(otlp)).entries
            except MalformedOtlp as problem:
                rejections.add(problem)
        return window.facts


class Intake:
    """Accepts OTLP export requests. Returns when their content is on disk."""

    def __init__(
        self,
        store: Store,
        budget: Budget | None = None,
        counted: Counted | None = None,
        span_reader: SpanReadingProcess | None = None,
    ) -> None:
        """``span_reader``: the process that reads spans under load."""
        self._store = store
        self._span_reader = span_reader
        self._opening = threading.Lock()
        self._checkpoints: CheckpointParts | None = None
        self.budget = budget or Budget()
        self.counted = counted or Counted()
        self.pass_on: list[PassOn] = []
        """Take metrics and log records. If one raises `StoreUnavailable`, the sender tries again."""

    def export(self, signal: Signal, body: bytes) -> Acknowledgement:
        """Store one request in its binary form.

        `MalformedOtlp` if it cannot be read at all; `StoreUnavailable` if it cannot be stored now.
        """
        if signal == "traces":
            return self._traces(body)
        if signal == "logs":
            return self._logs(body)
        return self._metrics(body)

    def _traces(self, body: bytes) -> Acknowledgement:
        with nullcontext() if self._span_reader is None else self._span_reader.read(body) as found:
            if found is None:
                spans, rejections = read_spans(body)
                batch, count = Batch(spans=spans), len(spans)
            else:
                batch, count, rejections = found.prepared(), found.spans, found.rejections
            try:
                if count:
                    self._keep(batch)
            except StoreError:
                raise
            except Exception:
                log.exception("a request cannot be stored as a whole; its items are stored individually")
                count, rejections = self._keep_apart(*read_spans(body), _of_spans)
        with self.counted.lock:
            self.counted.spans += count
            self.counted.rejected += rejections.count
        answer = ExportTraceServiceResponse()
        if rejections.count:
            answer.partial_success.rejected_spans = rejections.count
            answer.partial_success.error_message = str(rejections)
        return Acknowledgement(answer, rejections.count)

    def _logs(self, body: bytes) -> Acknowledgement:
        rejections = Rejections()
        facts: list[Fact] = []
        resources: dict[bytes, bytes] = {}
        windows = _Windows()
        logs: list[ReadLog] = []
        parts: list[CheckpointPart] = []
        others = 0
        passed = Envelope()
        for entry in chain(read_envelope(body).entries, windows.entries):  # the second grows meanwhile
            for scoped in (*entry.scopes, *entry.libraries):
                around = surroundings(entry, scoped)
                left: list[bytes] = []
                for item in scoped.items:
                    try:
                        check_scope(scoped.scope)
                        instance = _instance(entry.resource)
                        record = _record(item)
                        if is_window(record):
                            facts += windows.read(record, instance, rejections)
                        elif is_fact(record):
                            facts += _facts(record, instance)
                        else:
                            other = read_log(item, record, entry.resource, around)
                            parts += [self._joining().read(record)] if is_part(record) else []
                            logs += [] if other is None else [other]
                            left.append(item)
                            continue
                    except MalformedOtlp as problem:
                        rejections.add(problem)
                        continue
                    if instance is not None:
                        resources[instance] = entry.resource
                others += len(left)
                if left:
                    kept = passed.entries.add(resource=entry.resource, schema_url=entry.schema_url)
                    kept.scopes.add(scope=scoped.scope, items=left, schema_url=scoped.schema_url)
        spans = windows.spans
        try:
            if facts or spans or windows.links or logs:
                self._keep(Batch(spans, facts, resources, windows.links, logs))
            count, of_spans, of_logs = len(facts), len(spans), len(logs)
        except StoreError:
            raise
        except Exception:
            log.exception("a request cannot be stored as a whole; its items are stored individually")
            count, rejections = self._keep_apart(
                facts, rejections, lambda some: Batch(facts=some, resources=resources)
            )
            of_spans, rejections = self._keep_apart(spans, rejections, _of_spans)
            of_logs, rejections = self._keep_apart(logs, rejections, lambda some: Batch(logs=some))
        joined, refused = self._joining().join(parts, rejections) if parts else (0, 0)
        forwarded = bool(others) and self._pass_on("logs", passed.SerializeToString())
        untraced = others - len(logs)
        dropped = 0 if forwarded else untraced
        with self.counted.lock:
            self.counted.facts += count
            self.counted.spans += of_spans
            self.counted.log_records += others
            self.counted.logs_stored += of_logs
            self.counted.logs_dropped += dropped
            self.counted.checkpoints_joined += joined
            self.counted.checkpoints_refused += refused
            self.counted.rejected += rejections.count
        answer = ExportLogsServiceResponse()
        words = [str(rejections)] if rejections.count else []
        if untraced:
            what = "are forwarded, not stored" if forwarded else "are not stored"
            words.append(f"{untraced} log records without a trace id {what}")
        if words:
            answer.partial_success.rejected_log_records = rejections.count + dropped
            answer.partial_success.error_message = "; ".join(words)
        return Acknowledgement(answer, rejections.count + dropped)

    def _joining(self) -> CheckpointParts:
        """Return what joins checkpoints. Imported for the first part: few receivers get any."""
        with self._opening:
            if self._checkpoints is None:
                from playhead_receiver.ingest.checkpoint_parts import CheckpointParts

                self._checkpoints = CheckpointParts(self._store)
            return self._checkpoints

    def _pass_on(self, signal: Signal, body: bytes) -> bool:
        """Pass a request on to all destinations; whether any of them takes it."""
        return any([pass_on(signal, body) for pass_on in self.pass_on])

    def _keep(self, batch: Batch | Prepared) -> None:
        try:
            self._store.commit(batch)
        except StoreError as problem:
            with self.counted.lock:
                self.counted.refused += 1
            self.counted.refusal = problem, time.monotonic()
            raise
        self.counted.refusal = None

    def _keep_apart(
        self, items: list[T], rejections: Rejections, batch_of: Callable[[list[T]], Batch]
    ) -> tuple[int, Rejections]:
        """Store ``items`` by repeated halving, so that only items that cannot be stored are rejected.

        Returns how many were stored, and the rejections.
        """
        waiting, kept = [items], 0
        while waiting:
            some = waiting.pop()
            try:
                self._keep(batch_of(some))
                kept += len(some)
            except StoreError:
                raise
            except Exception as problem:
                middle = len(some) // 2
                if middle:
                    waiting += [some[middle:], some[:middle]]
                else:
                    rejections.add(MalformedOtlp(f"it cannot be stored: {type(problem).__name__}"))
        return kept, rejections

    def _metrics(self, body: bytes) -> Acknowledgement:
        try:
            request = ExportMetricsServiceRequest.FromString(body)
        except DecodeError as problem:
            raise MalformedOtlp(f"the body is no ExportMetricsServiceRequest: {problem}") from None
        if body and not request.resource_metrics:
            raise MalformedOtlp("the body is no ExportMetricsServiceRequest: it has only unknown fields")
        count = sum(
            len(scoped.metrics) for entry in request.resource_metrics for scoped in entry.scope_metrics
        )
        forwarded = bool(count) and self._pass_on("metrics", body)
        with self.counted.lock:
            self.counted.metrics += count
        answer = ExportMetricsServiceResponse()
        points = 0 if forwarded else _data_points(request)
        if points:
            answer.partial_success.rejected_data_points = points
            answer.partial_success.error_message = (
                f"{points} data points: metrics are not stored, and no destination takes them"
            )
        return Acknowledgement(answer, points)


def _data_points(request: ExportMetricsServiceRequest) -> int:
    count = 0
    for entry in request.resource_metrics:
        for scoped in entry.scope_metrics:
            for metric in scoped.metrics:
                kind = metric.WhichOneof("data")
                count += len(getattr(metric, kind).data_points) if kind else 0
    return count


def _named(otlp: bytes, instance: bytes | None) -> bytes:
    """A request with a span of a window, whose resource names the instance that it belongs to."""
    try:
        request = Envelope.FromString(request_of(otlp))
    except DecodeError as problem:
        raise MalformedOtlp(f"a span of a window cannot be decoded: {problem}") from None
    for entry in request.entries:
        entry.resource = _naming(entry.resource, instance)
    return request.SerializeToString()


@lru_cache(maxsize=256)
def _naming(resource: bytes, instance: bytes | None) -> bytes:
    """``resource``, with ``instance`` added if it names none: a sender's provider may not know it."""
    if instance is None or _instance(resource) is not None:
        return resource
    read = Resource.FromString(resource)
    set_attributes(read.attributes, {a.PLAYHEAD_INSTANCE: instance.hex()})
    return read.SerializeToString()


@lru_cache(maxsize=256)
def _instance(resource: bytes) -> bytes | None:
    try:
        return instance_of(Resource.FromString(resource))
    except DecodeError as problem:
        raise MalformedOtlp(f"resource cannot be decoded: {problem}") from None


def _record(item: bytes) -> LogRecord:
    try:
        return LogRecord.FromString(item)
    except DecodeError as problem:
        raise MalformedOtlp(f"log record cannot be decoded: {problem}") from None


def _facts(record: LogRecord, instance: bytes | None) -> list[Fact]:
    """The facts of a log record. `MalformedOtlp`."""
    facts = unpack_record(record, instance)
    for fact in facts:
        check_shape(fact)
    return facts
