"""Exports a run from a store to a file, and imports a file into a store.

There are two forms: a tape file (docs/tape-format.md), and OTLP JSON lines with one export request per
line, as the Collector's ``otlpjsonfile`` receiver reads them. An import goes through the intake like the
data of an agent, so importing a file twice has no further effect.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.errors import CorruptTape, MalformedOtlp, ReceiverRefused
from playhead_core.integrity import Link
from playhead_core.otlp import attributes_of
from playhead_core.otlp.log_records import log_line
from playhead_core.otlp_bytes import WINDOW_BYTES, window_request
from playhead_core.tape.frames import MAGIC, Record, encode
from playhead_core.tape.protocols import Tape
from playhead_exporter.delivery import Signal
from playhead_exporter.shipping.endpoint_answers import Accepted, Transport
from playhead_exporter.shipping.requests import (
    bounded,
    fact_requests,
    merge_spans,
    requests_of,
    span_requests,
)
from playhead_receiver.archive.partial_runs import PartialRun
from playhead_receiver.ingest.export import REQUESTS
from playhead_receiver.ingest.otlp_json import binary_of_json, export_json
from playhead_receiver.integrity import FileChains, StoreChains
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.spans.span_view import request_of
from playhead_receiver.storage.spans.whole_spans import Deriver
from playhead_replay.run.run import Run, trace_of
from playhead_replay.tape_files.tape_file import (
    COMPRESSED,
    SUFFIX,
    Keeper,
    TapeFile,
    bytes_of,
    is_tape,
    read_tape_file,
    read_unfinished,
    standing_alone,
    write_tape_file,
    written,
)
from playhead_semconv import attributes as a

LINE_BYTES = 1 << 20
"""Largest binary request that is written as one line, unless a single record is larger."""

REQUEST_BYTES = 4 << 20
"""About the largest request of log records that an import sends."""

LONGEST_LINE_BYTES = 64 << 20
"""Largest line in bytes: the largest request that the receiver accepts."""

TIMEOUT_S = 60.0


@dataclass(slots=True)
class Incoming:
    """The content of a file: it was read to its end once, and is read again while it is sent."""

    requests: Callable[[], Iterator[tuple[Signal, bytes]]]
    """OTLP export requests, made one at a time."""
    facts: int = 0
    """Number of facts in a tape; for OTLP lines, number of log records, each with one or more facts."""
    spans: int = 0
    trace_ids: set[str] = field(default_factory=set[str])
    damage: str = ""
    """Where the file is damaged, and why; everything before that was read."""
    problems: Counter[str] = field(default_factory=Counter[str])
    """What a file of another tool has that is not understood, and how often."""

    def joined(self, other: Incoming) -> Incoming:
        """Return the counts of both, as if they were one file; its content is not sent."""
        return Incoming(
            lambda: iter(()),
            self.facts + other.facts,
            self.spans + other.spans,
            self.trace_ids | other.trace_ids,
            "; ".join(filter(None, (self.damage, other.damage))),
            self.problems + other.problems,
        )

    def send(self, transport: Transport) -> int:
        """Send it to a receiver. Returns the number of rejected records. `ReceiverRefused`."""
        rejected = 0
        for signal, body in self.requests():
            answer = transport.send(signal, body, TIMEOUT_S)
            if not isinstance(answer, Accepted):
                raise ReceiverRefused("the receiver rejected the run", cause=answer.reason)
            rejected += answer.refused
        return rejected


@dataclass(slots=True)
class Material:
    """Everything of a run that goes into a file."""

    run: Run
    spans: Sequence[bytes]
    """As they came in: OTLP `ResourceSpans` with one span each."""
    resources: dict[bytes, dict[str, Any]]
    """Attributes of the OTel resource, by process instance."""
    whole: Callable[[], Iterable[ResourceSpans]]
    """The same spans, completed with everything that is derived."""
    tapes: Sequence[Tape]
    """The tapes of the run, with instance ids that no other run uses."""
    chains: StoreChains | FileChains
    logs: Sequence[bytes] = ()
    """Log records of other senders, each as OTLP `ResourceLogs` with one record."""

    @classmethod
    def of_store(cls, store: Store, name: str) -> Material:
        """A stored run. `RunUnknown`, `RunAmbiguous`."""
        run = Run.load(store, name)
        stored = list(store.spans(bytes.fromhex(run.trace_id)))
        partial_run = PartialRun(run.tapes, run.trace_id)
        resources: dict[bytes, dict[str, Any]] = {}
        for tape in run.tapes:
            resource = store.resource(tape.instance)
            if resource is not None:
                named = partial_run.of(tape.instance)
                resources[named] = attributes_of(Resource.FromString(resource).attributes)
                if a.PLAYHEAD_INSTANCE in resources[named]:
                    resources[named][a.PLAYHEAD_INSTANCE] = named.hex()
        deriver, named = Deriver(store), partial_run.tapes(run.tapes)
        return cls(
            run,
            [partial_run.otlp(one.otlp) for one in stored],
            resources,
            lambda: (partial_run.span(deriver.whole(one)) for one in stored),
            named,
            StoreChains(store, run.tapes, named),
            [one.otlp for one in store.logs(bytes.fromhex(run.trace_id))],
        )

    @classmethod
    def of_file(cls, path: Path) -> Material:
        """A tape file. `TapeMissing`, `CorruptTape`, `TapeTooNew`."""
        found = read_tape_file(path)
        run = Run.of_tapes(found.tapes, found.spans, path.name.partition(SUFFIX)[0], found.logs)
        whole = found.spans
        return cls(
            run,
            whole,
            found.resources,
            lambda: map(ResourceSpans.FromString, whole),
            found.tapes,
            FileChains(found.chains, found.parts.values()),
            found.logs,
        )

    def write_tape(self, path: Path, signing: Callable[[Keeper, str], Keeper] | None = None) -> int:
        """Write a tape file.

        Returns its size in bytes. ``signing``: makes a keeper that signs for a run.
        """
        keeper: Keeper | None = self.chains if self.chains.links else None
        if signing is not None:
            keeper = signing(self.chains, self.run.trace_id)
        return write_tape_file(path, self.tapes, self.spans, self.resources, keeper, self.logs)

    def lines(self) -> Iterator[bytes]:
        """As OTLP JSON lines: facts first, process by process, then complete spans, then log records."""
        yield from otlp_lines(self.tapes, self.whole(), self.resources)
        for body in log_requests(self.logs, LINE_BYTES):
            yield export_json(REQUESTS["logs"].FromString(body))


def otlp_lines(
    tapes: Sequence[Tape],
    spans: Iterable[ResourceSpans],
    resources: Mapping[bytes, Mapping[str, Any]],
) -> Iterator[bytes]:
    """OTLP JSON lines of a run: facts first, process by process, then spans."""
    for tape in tapes:
        facts: list[Record] = list(standing_alone(tape))
        for request in requests_of(facts, tape.instance, resources.get(tape.instance, {}), LINE_BYTES):
            yield export_json(REQUESTS["logs"].FromString(request.body()))
    for some in bounded(iter(spans), LINE_BYTES):
        yield export_json(merge_spans(some))


def log_requests(logs: Iterable[bytes], size_bytes: int = REQUEST_BYTES) -> Iterator[bytes]:
    """Export requests with these log records, each of about ``size_bytes`` at most."""
    parts: list[bytes] = []
    size = 0
    for otlp in logs:
        if parts and size + len(otlp) > size_bytes:
            yield b"".join(parts)
            parts, size = [], 0
        parts.append(request_of(otlp))
        size += len(otlp)
    if parts:
        yield b"".join(parts)


def write_lines(path: Path, lines: Iterable[bytes]) -> int:
    """Write OTLP JSON lines, readable by the owner only; compressed if the name ends in ``.gz``."""
    data = b"".join(line + b"\n" for line in lines)
    if path.name.endswith(COMPRESSED):
        data = gzip.compress(data, mtime=0)
    with written(path) as file:
        file.write(data)
    return len(data)


def incoming(path: Path, *, partial: bool = False) -> Incoming:
    """Read a tape file or OTLP JSON lines.

    `CorruptTape` with the position of the damage, unless ``partial``; `TapeMissing`, `TapeTooNew`.
    """
    if is_tape(path):
        return _of_tape(read_unfinished(path) if partial else read_tape_file(path), path.name)
    return _of_lines(path, partial)


def _of_tape(file: TapeFile, name: str) -> Incoming:
    def requests() -> Iterator[tuple[Signal, bytes]]:
        instance = file.tapes[0].instance if file.tapes else b""
        for tape in file.tapes:
            resource = file.resources.get(tape.instance, {})
            if tape.instance in file.chains and tape.instance not in file.parts:
                yield from chain_requests(file.chains[tape.instance], tape.instance, resource)
            for logs in fact_requests(tape.facts(), tape.instance, resource):
                yield logs.signal, logs.body()
        for spans in span_requests(file.spans, instance):
            yield spans.signal, spans.body()
        for body in log_requests(file.logs):
            yield Signal.LOGS, body

    found = Incoming(requests, damage=file.damage, spans=len(file.spans))
    try:
        trace_id = trace_of(file.tapes, file.spans)
        trace_id = trace_id or next((log_line(one).trace_id for one in file.logs), "")
        found.trace_ids |= {trace_id} if trace_id else set()
        for otlp in file.spans:
            ResourceSpans.FromString(otlp)
        for otlp in file.logs:
            log_line(otlp)
    except (DecodeError, IndexError) as problem:
        what = "a span or log record cannot be decoded"
        raise CorruptTape(f"{name} is damaged: {what}: {problem}") from None
    found.facts = sum(len(tape) for tape in file.tapes)
    return found


def chain_requests(
    links: Iterable[Link], instance: bytes, resource: Mapping[str, Any]
) -> Iterator[tuple[Signal, bytes]]:
    """Requests with the links of a chain, in windows; they are sent before the facts that they cover."""
    some = MAGIC
    for link in links:
        frame = encode(link)
        if len(some) + len(frame) > WINDOW_BYTES:
            yield Signal.LOGS, _window(some, instance, resource)
            some = MAGIC
        some += frame
    yield Signal.LOGS, _window(some, instance, resource)


def _window(tape: bytes, instance: bytes, resource: Mapping[str, Any]) -> bytes:
    return window_request(tape, -1, -1, instance, resource)


def _of_lines(path: Path, partial: bool) -> Incoming:
    data, cut = bytes_of(path)
    end = len(data)
    found = Incoming(lambda: (_read_line(line) for _, line in _lines(data, end)))
    problem, read = cut, 0
    for at, line in _lines(data, end):
        try:
            count_request(_read_line(line), found)
        except MalformedOtlp as said:
            problem, end = said.what, at
            break
        read += 1
    if problem:
        found.damage = f"{path.name} is damaged at byte {end}: {problem}"
        if not partial:
            raise CorruptTape(
                found.damage,
                cause=f"{read} lines before it can be read",
                hint=f"keep what can be read: playhead import --partial {path.name}",
            )
    return found


def _lines(data: memoryview, end: int) -> Iterator[tuple[int, bytes]]:
    """The non-empty lines of a mapped file up to ``end``, each with its offset."""
    at = 0
    source: Any = data.obj
    while at < end:
        behind = source.find(b"\n", at, end) + 1 or end
        line = bytes(data[at : min(behind, at + LONGEST_LINE_BYTES + 1)])
        if line.strip():
            yield at, line
        at = behind


def _read_line(line: bytes) -> tuple[Signal, bytes]:
    """The request in a line. `MalformedOtlp`."""
    if len(line) > LONGEST_LINE_BYTES:
        raise MalformedOtlp(f"a line is longer than {LONGEST_LINE_BYTES} bytes")
    try:
        value: Any = msgspec.json.decode(line)
        if "resourceSpans" in value:
            return Signal.TRACES, binary_of_json(line, REQUESTS["traces"])
        if "resourceLogs" in value:
            return Signal.LOGS, binary_of_json(line, REQUESTS["logs"])
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError) as problem:
        raise MalformedOtlp(f"not OTLP JSON: {problem}") from None
    except MalformedOtlp as problem:
        raise MalformedOtlp(f"not OTLP JSON: {problem.what}") from None
    raise MalformedOtlp("neither resourceSpans nor resourceLogs")


def count_request(request: tuple[Signal, bytes], found: Incoming) -> None:
    """Add the records of a request to the counts of ``found``."""
    signal, body = request
    if signal is Signal.TRACES:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                found.spans += len(scope.spans)
                found.trace_ids |= {span.trace_id.hex() for span in scope.spans}
        return
    for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
        for scope in resource.scope_logs:
            found.facts += len(scope.log_records)
            found.trace_ids |= {one.trace_id.hex() for one in scope.log_records}
