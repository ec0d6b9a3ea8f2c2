"""docs/tape-format.md is enough: a reader that was written from it, and the files of other versions."""

from __future__ import annotations

import struct
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.handmade import INSTANCE, MAIN, NOW_INSTANCE, TRACE, HandMade

from playhead_core.facts import Content, digest_of
from playhead_receiver.archive.run_files import Material
from playhead_receiver.storage import Batch, open_store
from playhead_replay import Run, read_tape_file, write_tape_file
from playhead_semconv import attributes as a
from playhead_semconv import events as e

VERSION_1 = Path(__file__).parent / "fixtures" / "version-1.tape"


class Reader:
    """Reads a tape with nothing but the document. MessagePack and CRC-32 are a library's."""

    def __init__(self, data: bytes) -> None:
        line, _, _ = data.partition(b"\n")
        assert line.startswith(b"playhead-tape\x00"), "no tape"
        self.version = int(line[14:])
        assert self.version in (1, 2, 3), "a later version"
        self.processes: dict[bytes, dict[str, Any]] = {}
        self.facts: dict[bytes, dict[int, list[Any]]] = {}
        self.spans: list[bytes] = []
        self.footer: list[int] | None = None
        self.digests: dict[bytes, dict[int, bytes]] = {}
        self.links: dict[bytes, list[list[Any]]] = {}
        at = 16
        while at < len(data):
            length, crc = struct.unpack_from("<II", data, at)
            if length == 0 and self.version == 1:
                break
            payload = data[at + 8 : at + 8 + length]
            assert len(payload) == length > 0, f"cut at byte {at}"
            assert zlib.crc32(payload) == crc, f"damaged at byte {at}"
            self.take(msgspec.msgpack.decode(payload), payload)
            at += 8 + length
        counted = [
            sum(map(len, self.facts.values())),
            len(self.spans),
            sum(map(len, self.links.values())),
        ]
        assert self.version == 1 or self.footer == counted, "cut"

    def take(self, record: list[Any], payload: bytes) -> None:
        kind, *fields = record
        if kind == 2:
            self.processes[fields[0]] = fields[3]
            self.facts.setdefault(fields[0], {})
        elif kind == 0:
            self.facts[fields[9]][fields[10]] = fields
            body = fields[8]
            if body is not None and body[2] is not None and len(body[2]) > 65_536:
                body = [*body[:2], [digest_of(body[2])], *body[3:]]
                payload = msgspec.msgpack.encode([0, *fields[:8], body, *fields[9:]])
            self.digests.setdefault(fields[9], {})[fields[10]] = digest_of(payload)
        elif kind == 1:
            self.spans.append(fields[0])
        elif kind == 3:
            self.footer = [*fields, 0][:3]
        elif kind == 4:
            self.links.setdefault(fields[0], []).append(fields[1:])

    def check(self, instance: bytes) -> int:
        """Hold the facts of a process against its chain; how many are covered."""
        before = digest_of(b"playhead-chain\0" + instance)
        expected: dict[int, bytes] = {}
        for said, digest, link, digests in self.links[instance]:
            assert link == digest_of(before + digest + said), "no link of this chain"
            assert digest == digest_of(digests), "other digests"
            what, ranges, _, _ = msgspec.msgpack.decode(said)
            numbers = [seq for first, last in ranges for seq in range(first, last + 1)]
            if what == "came":
                assert not expected.keys() & set(numbers), "twice"
            if digests:
                expected |= {seq: digests[at * 32 : at * 32 + 32] for at, seq in enumerate(numbers)}
            before = link
        assert self.digests[instance] == expected
        return len(expected)

    def content(self, instance: bytes, content: list[Any]) -> bytes:
        digest, _, inline, base, base_bytes = content
        if base is not None:
            tail = self.blob(instance, digest) if inline is None else inline
            return self.content(instance, [base, 0, None, None, 0])[:base_bytes] + tail
        if inline is not None:
            return inline
        for fact in self.facts[instance].values():
            body = fact[8]
            if body is not None and body[0] == digest and (body[2], body[3]) != (None, None):
                return self.content(instance, body)
        return self.blob(instance, digest)

    def blob(self, instance: bytes, digest: bytes) -> bytes:
        pieces = {
            fact[7]["playhead.blob.offset"]: fact[8][2]
            for fact in self.facts[instance].values()
            if fact[2] == "playhead.blob" and fact[7]["playhead.blob.digest"] == digest.hex()
        }
        return b"".join(pieces[offset] for offset in sorted(pieces))


def recorded() -> HandMade:
    """A tape with whole, extended and blob bodies."""
    made = HandMade().start()
    question = b'{"messages":["one"]}'
    made.chat(question, (b'{"id":', b'"1"}'))
    longer = question + b"and more"
    extension = Content(digest_of(longer), len(longer), b"and more", digest_of(question), len(question))
    made.fact(e.PLAYHEAD_EFFECT, attributes={a.PLAYHEAD_EFFECT_KIND: "one"}, body=extension)
    huge = bytes(range(256)) * 10
    for offset in (1000, 0):
        made.fact(
            e.PLAYHEAD_BLOB,
            attributes={a.PLAYHEAD_BLOB_DIGEST: digest_of(huge).hex(), a.PLAYHEAD_BLOB_OFFSET: offset},
            body=Content.chunk(huge[1000:] if offset else huge[:1000]),
        )
    body = Content(digest_of(huge), len(huge))
    made.fact(e.PLAYHEAD_EFFECT, attributes={a.PLAYHEAD_EFFECT_KIND: "two"}, body=body)
    return made.exit(0)


def test_a_reader_that_was_written_from_the_document_reads_a_tape(tmp_path: Path):
    made, child = recorded(), HandMade(NOW_INSTANCE, TRACE).start().exit(3)
    path = tmp_path / "run.tape"
    resources = {INSTANCE: {"service.name": "refund"}}
    spans = [span.otlp for span in made.spans]
    write_tape_file(path, [made.tape(), child.tape()], spans, resources)
    found = Reader(path.read_bytes())
    assert (found.version, list(found.processes)) == (2, [INSTANCE, NOW_INSTANCE])
    assert found.processes[INSTANCE] == {"service.name": "refund"}
    for one in (made, child):
        tape = one.tape()
        facts = found.facts[one.instance]
        assert list(facts) == list(range(len(one.facts)))
        for fact in one.facts:
            time_ns, lane, name, trace_id, _, exchange, delivery, attributes, body = facts[fact.seq][:9]
            assert (time_ns, lane, name, trace_id) == (fact.time_ns, MAIN, fact.name, TRACE)
            assert attributes == fact.attributes
            assert (exchange is None) == (fact.exchange is None)
            assert delivery is None or (fact.delivery is not None and delivery[0] == fact.delivery.batch)
            if fact.body is not None:
                assert found.content(one.instance, body) == tape.read(fact.body)
    assert [ResourceSpans.FromString(otlp).scope_spans[0].spans[0].span_id for otlp in found.spans] == [
        span.span_id for span in made.spans
    ]


def test_a_reader_that_was_written_from_the_document_checks_a_chain(tmp_path: Path):
    made, path = recorded(), tmp_path / "run.tape"
    made.fact(e.PLAYHEAD_EFFECT, body=Content.of(bytes(200_000)))
    with closing(open_store(tmp_path)) as store:
        for at in range(0, len(made.facts), 4):
            store.commit(Batch(facts=made.facts[at : at + 4]))
        Material.of_store(store, TRACE.hex()).write_tape(path)
    found = Reader(path.read_bytes())
    assert found.version == 3
    assert found.check(INSTANCE) == len(made.facts)
    found.digests[INSTANCE][3] = bytes(32)
    with pytest.raises(AssertionError):
        found.check(INSTANCE)


def test_a_tape_of_version_1_is_read(tmp_path: Path):
    found = Reader(VERSION_1.read_bytes())
    assert (found.version, found.footer) == (1, None)
    file = read_tape_file(VERSION_1)
    run = Run.of_tapes(file.tapes, file.spans)
    assert (run.status, [step.span.name for step in run.steps]) == (
        "success",
        ["chat gpt-4o", "execute_tool refund"],
    )
    assert run.outputs.stdout.data == b"refunded\n"
    assert run.exchanges[0].response == b'{"id":"1"}'
    assert len(found.facts[INSTANCE]) == len(list(file.tape.facts()))
    now = tmp_path / "now.tape"
    write_tape_file(now, file.tapes, file.spans)
    assert Reader(now.read_bytes()).facts == found.facts


@pytest.mark.parametrize("step", [1, 7, 40])
def test_wherever_a_file_is_cut_the_reader_and_we_say_so(tmp_path: Path, step: int):
    from playhead_core.errors import CorruptTape

    path = tmp_path / "run.tape"
    write_tape_file(path, recorded().tape())
    whole = path.read_bytes()
    cut = len(whole) - step
    path.write_bytes(whole[:cut])
    with pytest.raises((AssertionError, struct.error)):
        Reader(whole[:cut])
    with pytest.raises(CorruptTape, match=r"run\.tape is damaged at byte \d+: "):
        read_tape_file(path)
