"""From a batch to what an engine writes: done in the caller's thread, before the writer's turn.

Engine-neutral. Facts of one instance with consecutive numbers become one *run of facts*, spans of one
trace one *bundle*; both are compressed frames, so that what repeats within a commit is stored once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import msgspec
import zstandard

from playhead_checkpoint import BlobFolder
from playhead_receiver.span_view import (
    ResourceSummary,
    SpanSummary,
    open_frame,
    parse_span,
    resource_summary,
    summarize,
)
from playhead_receiver.store.protocol import Batch, StoredSpan
from playhead_semconv.facts import Content, Fact, digest_of

LEVEL = 3
OFFLOAD_BYTES = 512 * 1024
"""A fact's body of more than this goes to the blob folder."""

_local = threading.local()
_encode_facts = msgspec.msgpack.Encoder().encode
_decode_facts: msgspec.msgpack.Decoder[list[Fact]] = msgspec.msgpack.Decoder(list[Fact])
_decode_spans: msgspec.msgpack.Decoder[list[bytes]] = msgspec.msgpack.Decoder(list[bytes])
_decode_digests: msgspec.msgpack.Decoder[dict[int, bytes]] = msgspec.msgpack.Decoder(dict[int, bytes])


class FactRun(msgspec.Struct):
    """Consecutive facts of one instance, and their frame."""

    instance: bytes
    facts: list[Fact]
    data: bytes
    blobs: bytes | None
    """Which bodies lie in the blob folder: number → digest; None when none does."""

    @property
    def first(self) -> int:
        """Number of the first fact."""
        return self.facts[0].seq

    @property
    def last(self) -> int:
        """Number of the last fact."""
        return self.facts[-1].seq


class PreparedSpan(msgspec.Struct):
    """A span of a bundle. Its bytes are the resource's and ``tail``, joined."""

    summary: SpanSummary
    resource: bytes
    """The leading bytes that hold the OTLP resource; stored once for all spans that share them."""
    about: ResourceSummary
    tail: bytes


class Bundle(msgspec.Struct):
    """Spans of one trace, and the frame of their tails."""

    trace_id: bytes
    spans: list[PreparedSpan]
    data: bytes


class Prepared(msgspec.Struct):
    """A batch, ready to be written."""

    runs: list[FactRun]
    bundles: list[Bundle]
    resources: dict[bytes, bytes]
    size_bytes: int


def prepare(batch: Batch, blobs: BlobFolder) -> Prepared:
    """Ready ``batch``; large bodies are in ``blobs``, synced, when it returns.

    `MalformedOtlp` if a span is none; nothing of the batch is stored then.
    """
    runs = [fact_run(facts, blobs) for facts in consecutive(batch.facts)]
    bundles = _bundles(batch.spans)
    size = sum(len(run.data) for run in runs) + sum(len(bundle.data) for bundle in bundles)
    return Prepared(runs, bundles, dict(batch.resources), size)


def consecutive(facts: Iterable[Fact]) -> list[list[Fact]]:
    """``facts`` by instance, in stretches without a hole; of facts with one number the first."""
    by_instance: dict[bytes, dict[int, Fact]] = {}
    for fact in facts:
        by_instance.setdefault(fact.instance, {}).setdefault(fact.seq, fact)
    stretches: list[list[Fact]] = []
    for numbered in by_instance.values():
        expected = None
        for seq in sorted(numbered):
            if seq != expected:
                stretches.append([])
            stretches[-1].append(numbered[seq])
            expected = seq + 1
    return stretches


def fact_run(facts: list[Fact], blobs: BlobFolder) -> FactRun:
    """The frame of consecutive facts of one instance."""
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
    )


def open_run(data: bytes, offloaded: bytes | None, blobs: BlobFolder) -> list[Fact]:
    """The facts of a `FactRun`'s frame, as they came in."""
    facts = _decode_facts.decode(decompress(data))
    if offloaded is None:
        return facts
    places = _decode_digests.decode(offloaded)
    for place, fact in enumerate(facts):
        digest = places.get(fact.seq)
        if digest is not None and fact.body is not None:
            body = fact.body
            whole = Content(body.digest, body.size, blobs.get(digest), body.base, body.base_bytes)
            facts[place] = msgspec.structs.replace(fact, body=whole)
    return facts


def open_bundle(data: bytes) -> list[bytes]:
    """The tails of a `Bundle`'s spans."""
    return _decode_spans.decode(decompress(data))


def compress(data: bytes) -> bytes:
    """One zstd frame."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=LEVEL)
    return _local.compressor.compress(data)


def decompress(data: bytes) -> bytes:
    """The inverse of `compress`."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    return _local.decompressor.decompress(data)


def _bundles(spans: Sequence[StoredSpan]) -> list[Bundle]:
    by_trace: dict[bytes, dict[bytes, PreparedSpan]] = {}
    for span in spans:
        resource, own = open_frame(span.otlp)
        summary = summarize(parse_span(own))
        cut = _resource_end(span.otlp, resource)
        ready = PreparedSpan(summary, span.otlp[:cut], resource_summary(resource), span.otlp[cut:])
        known = by_trace.setdefault(summary.trace_id, {})
        before = known.get(summary.span_id)
        if before is None or summary.end_ns > before.summary.end_ns:
            known[summary.span_id] = ready
    bundles: list[Bundle] = []
    for trace_id, known in by_trace.items():
        ready = list(known.values())
        frame = compress(_encode_facts([span.tail for span in ready]))
        bundles.append(Bundle(trace_id, ready, frame))
    return bundles


def _resource_end(otlp: bytes, resource: bytes) -> int:
    """Where the leading resource field ends; 0 when the bytes do not begin with it."""
    start = 1
    while start < len(otlp) and otlp[start] & 0x80:
        start += 1
    end = start + 1 + len(resource)
    leads = otlp[:1] == b"\x0a" and resource and otlp[start + 1 : end] == resource
    return end if leads else 0


def resource_key(resource: bytes) -> bytes:
    """What a resource is found again by: 16 bytes."""
    return digest_of(resource)[:16]
