"""Prepares a batch for an engine in the caller's thread, before it goes to the writer.

The same for every engine. Consecutive facts of one instance become a *run of facts*, a compressed frame.
Spans of one trace become a *bundle*; the engine fills its frame (`storage.content.packing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.facts import Content, Fact, digest_of
from playhead_core.integrity import Link, digests_of
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.content.compressed_frames import compress, decoded, decompress
from playhead_receiver.storage.content.cut_points import (
    FAMILY_ATTRIBUTES,
    bodies,
    log_bodies,
    plain_bodies,
)
from playhead_receiver.storage.content.cutting import CutSpan, Cutter, Finder, together
from playhead_receiver.storage.spans.span_view import (
    ResourceSummary,
    SpanSummary,
    open_frame,
    parse_span,
    resource_summary,
    summarize,
)
from playhead_receiver.storage.values.span_labels import Label
from playhead_receiver.storage.values.stored import (
    Batch,
    PreparedBatch,
    ReadLog,
    ReadSpan,
    SpanLocation,
    StoredSpan,
)

OFFLOAD_BYTES = 512 * 1024
"""Bodies of facts above this size are stored as blobs."""

LOG_DIGEST_BYTES = 16

_encode_label = msgspec.msgpack.Encoder().encode
_encode_facts = msgspec.msgpack.Encoder().encode
_decode_facts: msgspec.msgpack.Decoder[list[Fact]] = msgspec.msgpack.Decoder(list[Fact])
_decode_digests: msgspec.msgpack.Decoder[dict[int, bytes]] = msgspec.msgpack.Decoder(dict[int, bytes])


class FactRun(msgspec.Struct):
    """Consecutive facts of one instance, and their frame."""

    instance: bytes
    facts: list[Fact]
    data: bytes
    blobs: bytes | None
    """Bodies that are blobs: number of the fact → digest, encoded; None if there are none."""
    digests: bytes
    """Digests of the facts, joined; see `playhead_core.integrity`."""

    @property
    def first(self) -> int:
        """Number of the first fact."""
        return self.facts[0].seq

    @property
    def last(self) -> int:
        """Number of the last fact."""
        return self.facts[-1].seq


class PreparedSpan(msgspec.Struct, gc=False, array_like=True):
    """A span. Its bytes are those of ``resource`` followed by those of ``cut``."""

    summary: SpanSummary
    resource: bytes
    """The leading bytes with the OTLP resource, stored once for all spans that share it."""
    about: ResourceSummary
    cut: CutSpan | bytes
    """Everything behind the resource; plain bytes if no large value was cut out."""
    label: bytes
    """The encoded `Label`."""


class PreparedLog(msgspec.Struct, gc=False, array_like=True):
    """A log record. Its bytes are those of ``resource`` followed by those of ``cut``."""

    time_ns: int
    digest: bytes
    span_id: bytes
    level: int
    is_content: bool
    resource: bytes
    service: str
    cut: CutSpan | bytes
    words: tuple[tuple[str, str], ...] = ()


class Bundle(msgspec.Struct, array_like=True):
    """Spans and log records of one trace."""

    trace_id: bytes
    spans: list[PreparedSpan]
    logs: list[PreparedLog] = []

    def agent(self, process: str) -> str:
        """Agent of the run: name of its process, else of the first service, else of the first agent."""
        services = [*(span.about.service for span in self.spans), *(log.service for log in self.logs)]
        process = process or next(filter(None, services), "")
        return process or next((span.summary.agent for span in self.spans if span.summary.agent), "")


class Prepared(PreparedBatch):
    """A batch that is ready to be written."""

    runs: list[FactRun]
    bundles: list[Bundle]
    resources: dict[bytes, bytes]
    size_bytes: int
    links: Sequence[Link] = ()


def prepare(batch: Batch, blobs: Blobs, cutter: Cutter) -> Prepared:
    """Prepare ``batch``. Its large bodies are in ``blobs``, synced, on return.

    `MalformedOtlp` if a span is invalid; nothing of the batch is stored in that case.
    """
    runs = [fact_run(facts, blobs) for facts in consecutive(batch.facts)]
    with cutter.turn:
        bundles = bundles_of(batch.spans, cutter)
        if batch.logs:
            bundles = with_logs(bundles, batch.logs, cutter)
    size = sum(len(run.data) for run in runs)
    size += sum(item.size_bytes for items in (batch.spans, batch.logs) for item in items)
    size += sum(len(link.digests) for link in batch.links)
    return Prepared(runs, bundles, dict(batch.resources), size, batch.links)


def consecutive(facts: Iterable[Fact]) -> list[list[Fact]]:
    """``facts`` by instance, in runs of consecutive numbers; of duplicates the first is kept."""
    by_instance: dict[bytes, dict[int, Fact]] = {}
    for fact in facts:
        by_instance.setdefault(fact.instance, {}).setdefault(fact.seq, fact)
    frames: list[list[Fact]] = []
    for numbered in by_instance.values():
        expected = None
        for seq in sorted(numbered):
            if seq != expected:
                frames.append([])
            frames[-1].append(numbered[seq])
            expected = seq + 1
    return frames


def fact_run(facts: list[Fact], blobs: Blobs) -> FactRun:
    """Make the frame of consecutive facts of one instance."""
    offloaded: dict[int, bytes] = {}
    stored: list[Fact] = facts
    for place, fact in enumerate(facts):
        body = fact.body
        if body is None or body.inline is None or len(body.inline) <= OFFLOAD_BYTES:
            continue
        if stored is facts:
            stored = list(facts)
        offloaded[fact.seq] = blobs.put(body.inline)
        bare = Content(body.digest, body.size, None, body.base, body.base_bytes)
        stored[place] = msgspec.structs.replace(fact, body=bare)
    return FactRun(
        facts[0].instance,
        facts,
        compress(_encode_facts(stored)),
        _encode_facts(offloaded) if offloaded else None,
        digests_of(facts),
    )


def offloads(batch: Batch) -> bool:
    """Whether a body of the batch will be a blob."""
    return any(
        fact.body is not None and len(fact.body.inline or b"") > OFFLOAD_BYTES for fact in batch.facts
    )


def offloaded_at(offloaded: bytes | None) -> dict[int, bytes]:
    """Bodies of a `FactRun` that are blobs: number of the fact → digest."""
    return {} if offloaded is None else decoded(_decode_digests, offloaded)


def blob_digests(offloaded: bytes | None) -> set[bytes]:
    """Digests of the blobs that a `FactRun` needs."""
    return set(offloaded_at(offloaded).values())


def bare_run(data: bytes) -> list[Fact]:
    """The facts of a `FactRun`, without bodies that are blobs. Raises `CorruptTape`."""
    return decoded(_decode_facts, decompress(data))


def pack_bare(facts: list[Fact], offloaded: bytes | None) -> tuple[bytes, bytes | None]:
    """Frame and blobs of facts from `bare_run` that were changed; bodies may have been removed."""
    places = offloaded_at(offloaded)
    kept = {fact.seq: places[fact.seq] for fact in facts if fact.body and fact.seq in places}
    return compress(_encode_facts(facts)), _encode_facts(kept) if kept else None


def open_run(data: bytes, offloaded: bytes | None, blobs: Blobs) -> list[Fact]:
    """The facts of a `FactRun` as they were received, with bodies from the blobs."""
    facts = bare_run(data)
    if offloaded is None:
        return facts
    places = offloaded_at(offloaded)
    for place, fact in enumerate(facts):
        digest = places.get(fact.seq)
        if digest is not None and fact.body is not None:
            body = fact.body
            whole = Content(body.digest, body.size, blobs.get(digest), body.base, body.base_bytes)
            facts[place] = msgspec.structs.replace(fact, body=whole)
    return facts


def bundles_of(spans: Sequence[StoredSpan | ReadSpan], cutter: Cutter) -> list[Bundle]:
    """Cut spans, grouped by trace; of versions of one span the one that ended later is kept."""
    by_trace: dict[bytes, dict[SpanVersions, tuple[SpanSummary, ReadSpan, ResourceSummary]]] = {}
    for stored in spans:
        span = stored if isinstance(stored, ReadSpan) else _read(stored)
        resource = resource_summary(span.resource)
        summary = summarize(span.view, bool(resource.instance))
        known = by_trace.setdefault(summary.trace_id, {})
        versions = summary.span_id, summary.start_ns, summary.label.served
        before = known.get(versions)
        if before is None or summary.end_ns > before[0].end_ns:
            known[versions] = summary, span, resource
    bundles: list[Bundle] = []
    for trace_id, known in by_trace.items():
        bundle = Bundle(trace_id, [])
        for summary, span, resource in known.values():
            cut = cutter.cut(trace_id, span.place, _finder(span.view)) or span.place.whole
            label = encode_label(summary.label)
            bundle.spans.append(PreparedSpan(summary, span.resource_field, resource, cut, label))
        bundles.append(bundle)
    return bundles


def with_logs(bundles: list[Bundle], logs: Sequence[ReadLog], cutter: Cutter) -> list[Bundle]:
    """Add log records to the bundles of their traces; of equal records one is kept."""
    by_trace = {bundle.trace_id: bundle for bundle in bundles}
    known: set[tuple[bytes, int, bytes]] = set()
    for log in logs:
        place = log.place
        digest = digest_of(place.source[place.begin : place.end])[:LOG_DIGEST_BYTES]
        identity = log.trace_id, log.time_ns, digest
        if identity in known:
            continue
        known.add(identity)
        bundle = by_trace.get(log.trace_id)
        if bundle is None:
            bundle = by_trace[log.trace_id] = Bundle(log.trace_id, [])
        cut = cutter.cut(log.trace_id, place, log_bodies) or place.whole
        about = log.time_ns, digest, log.span_id, log.level, log.is_content, log.resource_field
        bundle.logs.append(PreparedLog(*about, resource_summary(log.resource).service, cut, log.words))
    return list(by_trace.values())


SpanVersions: TypeAlias = tuple[bytes, int, bool]
"""Id, start, and whether a service received it: what the versions of one span have in common."""


def with_own_id(span: PreparedSpan, below: bool) -> PreparedSpan:
    """The span with an id of its own, for one that shares its id with another span of its trace.

    Zipkin gives the spans of client and server of a request one id. ``below``: make the span with this
    id the parent. The same span gets the same id each time.
    """
    summary, cut = span.summary, span.cut
    shared = b"".join(
        (summary.span_id, summary.start_ns.to_bytes(8, "big"), bytes((summary.label.served,)))
    )
    own_id = digest_of(shared)[:8]
    parent = summary.span_id if below else summary.parent
    if not isinstance(cut, bytes):
        texts = [(one.offset, cut.source[one.begin : one.end]) for one in cut.pieces]
        cut = together(cut.rest, texts)
    entry = ResourceSpans.FromString(cut)
    entry.scope_spans[0].spans[0].span_id = own_id
    entry.scope_spans[0].spans[0].parent_span_id = parent
    return PreparedSpan(
        msgspec.structs.replace(summary, span_id=own_id, parent=parent),
        span.resource,
        span.about,
        entry.SerializeToString(),
        span.label,
    )


def _read(span: StoredSpan) -> ReadSpan:
    otlp = span.otlp
    resource, own = open_frame(otlp)
    start = 1
    while start < len(otlp) and otlp[start] & 0x80:
        start += 1
    end = start + 1 + len(resource)
    leads = otlp[:1] == b"\x0a" and resource and otlp[start + 1 : end] == resource
    at = end if leads else 0
    begin = otlp.index(own, at)
    stop = begin + len(own)
    place = SpanLocation(otlp, begin, stop, otlp[at:begin], otlp[stop:])
    return ReadSpan(parse_span(own), resource, otlp[:at], place)


def _finder(view: Any) -> Finder:
    """How to find the large values of a span: fast, unless events or many attributes may hold them."""
    return bodies if view.events or len(view.attributes) > FAMILY_ATTRIBUTES else plain_bodies


@lru_cache(maxsize=4096)
def encode_label(label: Label) -> bytes:
    """Encode a label for storage."""
    return _encode_label(label)


@lru_cache(maxsize=4096)
def short_digest(value: bytes) -> bytes:
    """The key of a resource or a label: 16 bytes."""
    return digest_of(value)[:16]
