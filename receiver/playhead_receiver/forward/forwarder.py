"""Forwards what the store receives to one destination, in a thread of its own.

The queue is the store itself and a cursor in it, one file per destination: what was not delivered
before a restart is delivered after it. Spans are completed when the facts that they depend on are
stored; then the destination's filter is applied. The stored content is not changed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.errors import PlayheadError, StoreUnavailable
from playhead_core.facts import Fact
from playhead_core.otlp import pack, resource_logs
from playhead_exporter.delivery import Signal
from playhead_receiver.forward.delivery import Counts, DestinationConnection, Say, bounded, say_nothing
from playhead_receiver.forward.delivery_state import CursorFile
from playhead_receiver.forward.destination import Destination
from playhead_receiver.forward.sampling import Sampler
from playhead_receiver.forward.trimming import Trimmer
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.spans.whole_spans import Deriver
from playhead_receiver.storage.values.stored import Change, StoredSpan

POLL_S = 0.1
FACTS_PATIENCE_S = 30.0
"""Seconds that a span waits for the facts that it depends on; then it is sent incomplete."""


class Forwarder:
    """One destination and the thread that serves it.

    What was stored before the destination was first configured is not sent. ``base_url``: of the query
    API, where shortened spans are complete. `ConfigurationError` if headers that the destination names
    are missing.
    """

    def __init__(
        self,
        store: Store,
        destination: Destination,
        data_dir: str | os.PathLike[str],
        *,
        base_url: str = "",
        say: Say = say_nothing,
    ) -> None:
        self._store = store
        self._deriver = Deriver(store)
        self._stop = threading.Event()
        self._delivery = DestinationConnection(destination, self._stop, "spans", say)
        self._spans = Counts()
        self._facts_too = destination.tape
        self._trimmer = Trimmer(destination, base_url)
        self._file = CursorFile(data_dir, destination.name)
        self._cursor = self._file.load(store.position())
        self._sampler = Sampler(
            store, destination.sample, map(bytes.fromhex, self._cursor.open), time.monotonic()
        )
        self._waiting: dict[int, tuple[StoredSpan, float]] = {}
        self._thread = threading.Thread(target=self._run, name="playhead-forward", daemon=True)
        self.left_out = 0
        """Number of successful traces that were not sent, as they are not in the sampled share."""

    def start(self) -> None:
        """Start at the cursor, and save it, so that everything from now on will be sent."""
        self._file.save(self._cursor)
        for position in self._cursor.waiting:
            for change in self._store.changes(position - 1, 1):
                if change.position == position and isinstance(change.item, StoredSpan):
                    self._waiting[position] = (change.item, time.monotonic() + FACTS_PATIENCE_S)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the thread to stop, without waiting for it."""
        self._stop.set()

    def stop(self) -> None:
        """Stop the thread; what is left is sent after the next start. Idempotent."""
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join()
        self._delivery.close()

    @property
    def sent(self) -> int:
        """Number of spans that the destination has accepted."""
        return self._spans.sent

    @property
    def refused(self) -> int:
        """Number of spans that it has refused permanently."""
        return self._spans.refused

    @property
    def problem(self) -> str:
        """Why nothing gets through at the moment; empty if deliveries work."""
        return self._delivery.problem

    @property
    def position(self) -> int:
        """Position up to which all changes were sent, except spans that wait for their facts."""
        return self._cursor.position

    @property
    def behind(self) -> int:
        """Number of spans and facts in the store that it has not reached yet."""
        return max(0, self._store.position() - self._cursor.position)

    @property
    def waiting(self) -> int:
        """Number of spans that wait for the facts that they depend on."""
        return len(self._waiting)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                changes = list(self._store.changes(self._cursor.position))
                if not self._forward(changes):
                    return
            except PlayheadError as problem:
                self._delivery.problem = problem.what
                changes = []
            if not changes:
                self._stop.wait(POLL_S)

    def _forward(self, changes: list[Change]) -> bool:
        """Send what is ready, and advance the cursor; False if stopped before that."""
        ready: list[StoredSpan] = []
        held: dict[int, tuple[StoredSpan, float]] = {}
        now = time.monotonic()
        fresh = {
            change.position: (change.item, now + FACTS_PATIENCE_S)
            for change in changes
            if isinstance(change.item, StoredSpan) and self._sampler.takes(change.item.trace_id, now)
        }
        for position, (span, deadline) in {**self._waiting, **fresh}.items():
            if now >= deadline or self._is_whole(span):
                ready.append(span)
            else:
                held[position] = (span, deadline)
        facts = [change.item for change in changes if isinstance(change.item, Fact)]
        if self._facts_too:
            for parts in self._fact_requests(facts):
                if not self._delivery.deliver(Signal.LOGS, parts, Counts()):
                    return False
        for parts in self._span_requests(ready):
            if not self._delivery.deliver(Signal.TRACES, parts, self._spans):
                return False
        bad, good = self._sampler.judge(now)
        for trace_id in bad:
            for parts in self._span_requests(self._readable(trace_id)):
                if not self._delivery.deliver(Signal.TRACES, parts, self._spans):
                    return False
        self._sampler.close((*bad, *good))
        self.left_out += len(good)
        open = [trace_id.hex() for trace_id in self._sampler.open()]
        if changes or held.keys() != self._waiting.keys() or open != self._cursor.open:
            self._waiting = held
            self._cursor.waiting, self._cursor.open = sorted(held), open
            if changes:
                self._cursor.position = changes[-1].position
            self._file.save(self._cursor)
        return True

    def _readable(self, trace_id: bytes) -> Iterator[StoredSpan]:
        """The spans of a trace up to the first damaged one. Damage must not block the queue."""
        try:
            yield from self._store.spans(trace_id)
        except StoreUnavailable:
            raise
        except PlayheadError as problem:
            self._delivery.problem = problem.what

    def _is_whole(self, span: StoredSpan) -> bool:
        try:
            return self._deriver.is_whole(span)
        except StoreUnavailable:
            raise
        except PlayheadError:  # its tape is damaged
            return True

    def _whole(self, span: StoredSpan) -> ResourceSpans:
        try:
            return self._deriver.whole(span)
        except StoreUnavailable:
            raise
        except PlayheadError:
            return ResourceSpans.FromString(span.otlp)

    def _span_requests(self, spans: Iterable[StoredSpan]) -> Iterator[list[bytes]]:
        """Export requests as lists of parts to be joined, one part per span."""
        return bounded(
            ExportTraceServiceRequest(
                resource_spans=[self._trimmer.trim(self._whole(span))]
            ).SerializeToString()
            for span in spans
        )

    def _fact_requests(self, facts: list[Fact]) -> Iterator[list[bytes]]:
        """Export requests as lists of parts to be joined, one part per log record."""
        by_instance: dict[bytes, list[Fact]] = {}
        for fact in facts:
            by_instance.setdefault(fact.instance, []).append(fact)

        def parts() -> Iterator[bytes]:
            for instance, own in by_instance.items():
                resource = Resource.FromString(self._store.resource(instance) or b"")
                for record in pack(sorted(own, key=lambda fact: fact.seq)):
                    logs = resource_logs(resource, [record])
                    yield ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()

        return bounded(parts())
