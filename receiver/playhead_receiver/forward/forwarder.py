"""Forwards what the store takes to one destination, in a thread of its own.

The queue is the store itself and a cursor in it, one file per destination: what was not delivered
before a restart is delivered after it. Spans are made whole, when the facts they rest on are there;
then the destination's filter sees them. What is stored stays as it is.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterable, Iterator

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_exporter.shipping.answers import Accepted, Refused, Transport, TryLater
from playhead_exporter.shipping.endpoint import Endpoint, Signal
from playhead_exporter.shipping.http import HttpTransport
from playhead_receiver.derive import Deriver
from playhead_receiver.forward.cursor import CursorFile
from playhead_receiver.forward.destination import Destination
from playhead_receiver.forward.sampling import Sampler
from playhead_receiver.forward.trimming import Trimmer
from playhead_receiver.store.protocol import Change, Store, StoredSpan
from playhead_semconv.errors import PlayheadError, StoreUnavailable
from playhead_semconv.facts import Fact
from playhead_semconv.otlp import pack, resource_logs

REQUEST_BYTES = 4 * 1024 * 1024
"""No request is longer, uncompressed, unless a single span is."""
POLL_S = 0.1
TIMEOUT_S = 10.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
FACTS_PATIENCE_S = 30.0
"""How long a span waits for the facts it rests on before it goes as it is."""


class Forwarder:
    """One destination and the thread that serves it.

    What was stored before it was first named is not sent. ``base_url``: of the query API, where a span
    that was cut is whole. `ConfigurationError` if there are no headers where it wants some.
    """

    def __init__(
        self,
        store: Store,
        destination: Destination,
        data_dir: str | os.PathLike[str],
        *,
        base_url: str = "",
        patience_s: float = FACTS_PATIENCE_S,
    ) -> None:
        self._store = store
        self._deriver = Deriver(store)
        self._transport = _transport(destination)
        self._facts_too = destination.tape
        self._trimmer = Trimmer(destination, base_url)
        self._patience_s = patience_s
        self._file = CursorFile(data_dir, destination.name)
        self._cursor = self._file.load(store.position())
        self._sampler = Sampler(
            store, destination.sample, map(bytes.fromhex, self._cursor.open), time.monotonic()
        )
        self._waiting: dict[int, tuple[StoredSpan, float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="playhead-forward", daemon=True)
        self.sent = 0
        """Spans that the destination has taken."""
        self.refused = 0
        """Spans that it has refused for good."""
        self.left_out = 0
        """Traces that went well and are not of its share."""
        self.problem = ""
        """Why nothing gets through just now; empty while it does."""

    def start(self) -> None:
        """Begin where the cursor stands, and keep that: what comes from now on is not lost."""
        self._file.save(self._cursor)
        for position in self._cursor.waiting:
            for change in self._store.changes(position - 1, 1):
                if change.position == position and isinstance(change.item, StoredSpan):
                    self._waiting[position] = (change.item, time.monotonic() + self._patience_s)
        self._thread.start()

    def stop(self) -> None:
        """Stop soon; the rest is sent when it starts again. Idempotent."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._transport.close()

    @property
    def position(self) -> int:
        """Everything up to this change was sent, but for spans that wait for their facts."""
        return self._cursor.position

    @property
    def waiting(self) -> int:
        """Spans that wait for the facts they rest on."""
        return len(self._waiting)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                changes = list(self._store.changes(self._cursor.position))
                if not self._forward(changes):
                    return
            except PlayheadError as problem:
                self.problem = problem.what
                changes = []
            if not changes:
                self._stop.wait(POLL_S)

    def _forward(self, changes: list[Change]) -> bool:
        """Send what is ready and move the cursor; False when stopped before that."""
        ready: list[StoredSpan] = []
        held: dict[int, tuple[StoredSpan, float]] = {}
        now = time.monotonic()
        fresh = {
            change.position: (change.item, now + self._patience_s)
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
                if not self._deliver(Signal.LOGS, parts, spans=False):
                    return False
        for parts in self._span_requests(ready):
            if not self._deliver(Signal.TRACES, parts, spans=True):
                return False
        bad, good = self._sampler.judge(now)
        for trace_id in bad:
            for parts in self._span_requests(self._store.spans(trace_id)):
                if not self._deliver(Signal.TRACES, parts, spans=True):
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
        """Export requests as parts to be joined, one part a span."""
        return _bounded(
            ExportTraceServiceRequest(
                resource_spans=[self._trimmer.trim(self._whole(span))]
            ).SerializeToString()
            for span in spans
        )

    def _fact_requests(self, facts: list[Fact]) -> Iterator[list[bytes]]:
        """Export requests as parts to be joined, one part a log record."""
        by_instance: dict[bytes, list[Fact]] = {}
        for fact in facts:
            by_instance.setdefault(fact.instance, []).append(fact)

        def parts() -> Iterator[bytes]:
            for instance, own in by_instance.items():
                resource = Resource.FromString(self._store.resource(instance) or b"")
                for record in pack(sorted(own, key=lambda fact: fact.seq)):
                    logs = resource_logs(resource, [record])
                    yield ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()

        return _bounded(parts())

    def _deliver(self, signal: Signal, parts: list[bytes], *, spans: bool) -> bool:
        """Send one request until it is taken or refused for good; False when stopped before that.

        A request that is refused is halved, until what is to blame stands alone.
        """
        pause_s = FIRST_PAUSE_S
        while not self._stop.is_set():
            answer = self._transport.send(signal, b"".join(parts), TIMEOUT_S)
            if isinstance(answer, Accepted):
                self.problem = answer.message
                if spans:
                    self.sent += len(parts) - min(answer.refused, len(parts))
                    self.refused += min(answer.refused, len(parts))
                return True
            self.problem = answer.reason
            if isinstance(answer, Refused):
                if len(parts) > 1:
                    middle = len(parts) // 2
                    return self._deliver(signal, parts[:middle], spans=spans) and self._deliver(
                        signal, parts[middle:], spans=spans
                    )
                self.refused += spans
                return True
            wait_s = answer.after_s if isinstance(answer, TryLater) else None
            if wait_s is None:
                wait_s = random.uniform(pause_s / 2, pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            self._stop.wait(min(wait_s, LONGEST_PAUSE_S))
        return False


def _bounded(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Groups of at most `REQUEST_BYTES`; a larger part alone."""
    group: list[bytes] = []
    size = 0
    for part in parts:
        if group and size + len(part) > REQUEST_BYTES:
            yield group
            group, size = [], 0
        group.append(part)
        size += len(part)
    if group:
        yield group


def _transport(destination: Destination) -> Transport:
    headers = destination.sent_headers()
    scheme, _, address = destination.endpoint.partition("://")
    if scheme in ("grpc", "grpcs"):
        from playhead_exporter.shipping.grpc import GrpcTransport  # heavy, and not everybody wants it

        endpoint = Endpoint.parse(f"http{'s' * (scheme == 'grpcs')}://{address}", "grpc")
        return GrpcTransport(endpoint, "", destination.ca, headers)
    endpoint = Endpoint.parse(destination.endpoint, "http/protobuf")
    return HttpTransport(endpoint, "", destination.ca, headers)
