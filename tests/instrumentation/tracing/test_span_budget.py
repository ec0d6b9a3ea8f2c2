"""The byte budget: nothing is truncated, the largest moves to the tape."""

import json

import msgspec

from playhead_core.facts import Content, digest_of
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.tracing.span_budget import PART_BYTES, SpanOnTape, fit
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class ListSink:
    instance = b"i" * 16

    def __init__(self) -> None:
        self.facts = []

    def append(self, fact):
        self.facts.append(msgspec.structs.replace(fact, instance=self.instance, seq=len(self.facts)))
        return len(self.facts) - 1


def test_what_fits_stays():
    sink = ListSink()
    attributes = {"text": "x" * 100, "count": 3}
    assert fit(attributes, 1000, sink) is attributes
    assert sink.facts == []


def test_the_largest_moves_first_and_can_be_read_back():
    sink = ListSink()
    large, small = "ü" * (PART_BYTES // 2 + 10), "y" * 600
    kept = fit({"a": small, "b": large, "n": [1, 2]}, 1000, sink, span=SpanOnTape(b"t" * 16, b"s" * 8))
    digest = digest_of(large.encode())
    assert kept == {"a": small, "n": [1, 2], "b_ref": f"blob:{digest.hex()}"}
    assert [(fact.name, fact.trace_id, fact.span_id) for fact in sink.facts] == [
        (e.PLAYHEAD_BLOB, b"t" * 16, b"s" * 8)
    ] * 2
    assert [fact.attributes for fact in sink.facts] == [
        {
            a.PLAYHEAD_BLOB_DIGEST: digest.hex(),
            a.PLAYHEAD_BLOB_OFFSET: offset,
            a.PLAYHEAD_BLOB_SIZE: len(large.encode()),
        }
        for offset in (0, PART_BYTES)
    ]
    tape = MemoryTape(sink.facts)
    assert tape.read(Content(digest, len(large.encode()))) == large.encode()


def test_a_string_that_the_sdk_would_cut_moves_though_the_span_is_small():
    sink = ListSink()
    text = json.dumps(["a" * 90])
    kept = fit({"m": text, "s": "short"}, 1 << 20, sink, longest=80)
    assert kept == {"s": "short", "m_ref": f"blob:{digest_of(text.encode()).hex()}"}


def test_structures_and_bytes_move_too():
    sink = ListSink()
    rows, raw = ["r" * 500], b"\xff" * 500
    kept = fit({"rows": rows, "raw": raw}, 100, sink)
    assert kept == {
        "rows_ref": f"blob:{digest_of(json.dumps(rows, separators=(',', ':')).encode()).hex()}",
        "raw_ref": f"blob:{digest_of(raw).hex()}",
    }


def test_without_a_tape_there_is_nowhere_to_move_to():
    attributes = {"m": "x" * 1000}
    assert fit(attributes, 100, None) is attributes


def test_what_the_exchange_tells_needs_no_blob():
    sink = ListSink()
    messages, note = "m" * 900, "n" * 900
    kept = fit(
        {a.GEN_AI_INPUT_MESSAGES: messages, "note": note},
        300,
        sink,
        span=SpanOnTape(exchange="ab/cd/http/0"),
    )
    assert kept == {
        f"{a.GEN_AI_INPUT_MESSAGES}_ref": "exchange:ab/cd/http/0",
        "note_ref": f"blob:{digest_of(note.encode()).hex()}",
    }
    assert {fact.attributes[a.PLAYHEAD_BLOB_DIGEST] for fact in sink.facts} == {
        digest_of(note.encode()).hex()
    }
