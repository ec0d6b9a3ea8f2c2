import zlib

import msgspec
import pytest

from playhead_core.errors import CorruptTape, MalformedOtlp, TapeGap
from playhead_core.facts import Content, Delivery, ErrorRecord, ExchangeId, Fact, digest_of
from playhead_core.tape.fact_shapes import check_shape
from playhead_core.tape.folds import end_of, is_inbound, level_of
from playhead_core.tape.frames import (
    HEAD,
    MAGIC,
    MAX_PAYLOAD_BYTES,
    Header,
    Scan,
    SpanRecord,
    encode,
    next_frame,
    read_whole,
    scan_whole,
    tag_of,
)
from playhead_core.tape.indexed_tapes import MemoryTape, gather
from playhead_core.tape.slices import part_of, without_parts
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INSTANCE = bytes(range(16))
CALL = ExchangeId(7, "http", 0)


def fact(seq: int, name: str, **fields: object) -> Fact:
    return Fact(time_ns=1000 + seq, lane=7, name=name, instance=INSTANCE, seq=seq, **fields)  # type: ignore[arg-type]


def exchange_facts(how: str = "error") -> list[Fact]:
    return [
        fact(
            0,
            e.PLAYHEAD_EXCHANGE_REQUEST,
            exchange=CALL,
            attributes={a.PLAYHEAD_ASK_KEY: "POST http://x/v1", a.PLAYHEAD_ASK_EFFECT: "write"},
            body=Content.of(b"{}"),
        ),
        fact(
            1, e.PLAYHEAD_EXCHANGE_RESPONSE, exchange=CALL, attributes={"http.response.status_code": 200}
        ),
        fact(
            2,
            e.PLAYHEAD_EXCHANGE_DATA,
            exchange=CALL,
            delivery=Delivery(3, 0),
            body=Content.chunk(b"ab"),
        ),
        fact(
            3,
            e.PLAYHEAD_EXCHANGE_END,
            exchange=CALL,
            attributes={
                a.PLAYHEAD_END_HOW: how,
                a.PLAYHEAD_ERROR_MODULE: "httpx2",
                a.PLAYHEAD_ERROR_QUALNAME: "ReadError",
                a.PLAYHEAD_ERROR_MESSAGE: "gone",
            },
        ),
    ]


def tape_bytes(*records: object) -> bytes:
    return MAGIC + encode(Header(INSTANCE, 5)) + b"".join(encode(r) for r in records)  # type: ignore[arg-type]


def test_records_round_trip_through_frames():
    facts = exchange_facts()
    span = SpanRecord(b"otlp")
    records = list(read_whole(tape_bytes(*facts, span)))
    assert records == [Header(INSTANCE, 5), *facts, span]
    scan = Scan(tape_bytes(*facts, span))
    assert (len(list(scan)), scan.torn, scan.problem, scan.skipped, scan.too_new) == (6, False, "", 0, 0)
    assert (scan.facts, scan.spans) == (4, 1)


def test_a_torn_tail_is_reported_with_its_position_and_everything_before_is_read():
    whole = tape_bytes(*exchange_facts())
    for cut in range(len(MAGIC) + 1, len(whole)):
        scan = Scan(whole[:cut])
        records = [record for _, record in scan]
        assert tape_bytes()[: len(MAGIC)] == MAGIC
        assert scan.end <= cut
        assert scan.torn == (scan.end != cut)
        assert len(records) <= 5


def test_zeros_behind_the_last_frame_are_not_damage():
    scan = Scan(tape_bytes(*exchange_facts()) + bytes(4096))
    assert len(list(scan)) == 5
    assert not scan.torn


def test_a_flipped_byte_is_refused_with_the_position():
    data = bytearray(tape_bytes(*exchange_facts()))
    data[-3] ^= 1
    with pytest.raises(CorruptTape, match=r"damaged at byte \d+: checksum differs"):
        list(read_whole(bytes(data)))


def test_a_whole_frame_that_holds_no_record_is_passed_over_and_counted():
    payload = msgspec.msgpack.encode([99, "from a later version"])
    odd = HEAD.pack(len(payload), zlib.crc32(payload)) + payload
    whole = tape_bytes(*exchange_facts()[:2]) + odd + encode(exchange_facts()[2])
    scan = Scan(whole)
    assert [record for _, record in scan] == [Header(INSTANCE, 5), *exchange_facts()[:3]]
    assert (scan.skipped, scan.torn, scan.end) == (1, False, len(whole))
    with pytest.raises(CorruptTape, match="not a record"):
        list(read_whole(whole))


def test_facts_fold_into_an_exchange():
    (exchange,) = MemoryTape(exchange_facts()).exchanges().values()
    assert exchange.ask.key == "POST http://x/v1"
    assert exchange.ask.effect == "write"
    assert [part.data.inline for part in exchange.parts] == [b"ab"]
    assert exchange.end is not None
    assert exchange.end.how == "error"
    assert exchange.end.error == ErrorRecord("httpx2", "ReadError", "gone")
    assert (exchange.first_seq, exchange.last_seq) == (0, 3)
    begun = msgspec.structs.replace(exchange_facts()[0], seq=7)
    (exchange,) = MemoryTape([begun]).exchanges().values()
    assert (exchange.first_seq, exchange.last_seq, exchange.end) == (7, 7, None)


def test_an_error_is_told_as_far_as_it_is_known():
    at = {a.PLAYHEAD_END_HOW: "error", a.PLAYHEAD_ERROR_QUALNAME: "KeyError"}
    assert end_of(fact(0, e.PLAYHEAD_EXCHANGE_END, attributes=at)).error == ErrorRecord(
        "", "KeyError", ""
    )
    at |= {a.PLAYHEAD_ERROR_ARGS: ["a", 1], a.PLAYHEAD_ERROR_PHASE: "request"}
    known = ErrorRecord("", "KeyError", "", ["a", 1], "request")
    assert end_of(fact(0, e.PLAYHEAD_EXCHANGE_END, attributes=at)).error == known


def test_an_extension_is_resolved_along_its_chain():
    first = Content.of(b'{"messages":[1')
    second = Content(digest_of(b'{"messages":[1,2'), 16, b",2", first.digest, 14)
    third = Content(digest_of(b'{"messages":[1,2,3]}'), 20, b",3]}", second.digest, 16)
    facts = [fact(i, e.PLAYHEAD_READ, body=c) for i, c in enumerate((first, second, third))]
    tape = MemoryTape(facts)
    assert tape.read(third) == b'{"messages":[1,2,3]}'
    assert tape.read(Content(second.digest, 16)) == b'{"messages":[1,2'


def test_a_blob_is_joined_from_its_parts_and_verified():
    data = b"x" * 10 + b"y" * 5
    digest = digest_of(data)

    def part(seq: int, offset: int, piece: bytes) -> Fact:
        return fact(
            seq,
            e.PLAYHEAD_BLOB,
            attributes={a.PLAYHEAD_BLOB_DIGEST: digest.hex(), a.PLAYHEAD_BLOB_OFFSET: offset},
            body=Content.chunk(piece),
        )

    assert MemoryTape([part(0, 0, data[:10]), part(1, 10, data[10:])]).read(Content(digest, 15)) == data
    with pytest.raises(CorruptTape, match=f": content {digest.hex()[:16]} differs from its digest"):
        MemoryTape([part(0, 0, data[:10])]).read(Content(digest, 15))


def test_a_blob_may_be_there_twice_and_in_other_pieces():
    whole = bytes(range(50))
    digest = digest_of(whole)
    first = fact(0, e.PLAYHEAD_READ, body=Content.of(whole[:7] + b"else"))
    assert first.body is not None
    parts = [
        fact(
            1 + place,
            e.PLAYHEAD_BLOB,
            attributes={a.PLAYHEAD_BLOB_DIGEST: digest.hex(), a.PLAYHEAD_BLOB_OFFSET: offset},
            body=Content.chunk(whole[offset : offset + 20]),
        )
        for place, offset in enumerate((0, 20, 40, 7, 27, 47, 0, 20, 40))
    ]
    extension = Content(digest, len(whole), None, first.body.digest, 7)
    for asked in (Content(digest, len(whole)), extension):
        assert MemoryTape([first, *parts]).read(asked) == whole


def test_the_tail_of_an_extension_may_be_in_blob_facts():
    whole = b"head" + b"x" * 10 + b"y" * 5
    digest = digest_of(whole)
    first = fact(0, e.PLAYHEAD_READ, body=Content.of(b"header"))
    assert first.body is not None
    parts = [
        fact(
            1 + place,
            e.PLAYHEAD_BLOB,
            attributes={a.PLAYHEAD_BLOB_DIGEST: digest.hex(), a.PLAYHEAD_BLOB_OFFSET: offset},
            body=Content.chunk(piece),
        )
        for place, (offset, piece) in enumerate(((4, b"x" * 10), (14, b"y" * 5)))
    ]
    extension = Content(digest, len(whole), None, first.body.digest, 4)
    last = fact(3, e.PLAYHEAD_READ, body=extension)
    assert MemoryTape([first, *parts, last]).read(extension) == whole
    assert MemoryTape([first, *parts, last]).read(Content(digest, len(whole))) == whole


def test_missing_numbers_are_gaps():
    facts = [fact(i, e.PLAYHEAD_READ) for i in (0, 1, 4, 6)]
    tape = MemoryTape(facts)
    assert tape.gaps() == [(2, 3), (5, 5)]
    with pytest.raises(TapeGap, match="facts 2 to 3 are missing"):
        tape.require_whole()


def test_of_two_facts_with_one_number_the_last_counts():
    said = [fact(seq, e.PLAYHEAD_STATE, attributes={"n": n}) for seq, n in ((0, 0), (1, 1), (1, 2))]
    for facts in (said, [said[1], said[0], said[2]], [said[1], said[2], said[0]]):
        tape = MemoryTape(facts)
        assert [one.attributes["n"] for one in tape.facts()] == [0, 2]
        assert (tape.fact(1), len(tape), tape.last_seq) == (said[2], 2, 1)


def test_a_fact_without_a_number_hides_no_other():
    said = [fact(seq, e.PLAYHEAD_STATE) for seq in (-1, 0, 1)]
    for facts in (said, said[::-1]):
        tape = MemoryTape(facts)
        assert (list(tape.facts()), len(tape), -1 in tape.disorder) == (said[1:], 2, True)


def test_a_base_is_taken_in_part_along_a_chain():
    first = Content.of(b"0123456789")
    second = Content(digest_of(b"0123456ABCDEF"), 13, b"ABCDEF", first.digest, 7)
    third = Content(digest_of(b"0123456ABXY"), 11, b"XY", second.digest, 9)
    fourth = Content(digest_of(b"0123!"), 5, b"!", third.digest, 4)
    bodies = (first, second, third, fourth)
    wanted = (b"0123456789", b"0123456ABCDEF", b"0123456ABXY", b"0123!")
    for number, whole in enumerate(wanted):
        facts = [fact(seq, e.PLAYHEAD_READ, body=body) for seq, body in enumerate(bodies)]
        assert MemoryTape(facts).read(bodies[number]) == whole


def test_overlapping_pieces_of_a_blob_are_joined_once():
    whole = bytes(range(30))
    digest = digest_of(whole)

    def part(seq: int, begin: int, end: int) -> Fact:
        attributes = {a.PLAYHEAD_BLOB_DIGEST: digest.hex(), a.PLAYHEAD_BLOB_OFFSET: begin}
        return fact(seq, e.PLAYHEAD_BLOB, attributes=attributes, body=Content.chunk(whole[begin:end]))

    pieces = [part(0, 0, 12), part(1, 5, 9), part(2, 8, 20), part(3, 12, 18), part(4, 19, 30)]
    assert MemoryTape(pieces).read(Content(digest, 30)) == whole
    assert MemoryTape(pieces[::-1]).read(Content(digest, 30)) == whole


def test_data_behind_zeros_is_damage():
    facts = exchange_facts()
    whole = tape_bytes(*facts)
    scan = Scan(whole + bytes(64) + encode(facts[0]))
    assert [record for _, record in scan][1:] == facts
    assert (scan.torn, scan.end, scan.problem) == (True, len(whole), "zeros")
    short = Scan(whole + b"\0\0x")
    assert [record for _, record in short][1:] == facts
    assert (short.torn, short.end, short.problem) == (True, len(whole), "half a frame")


def test_a_tape_without_facts_is_that_of_its_instance():
    tape = MemoryTape([], INSTANCE)
    assert (tape.instance, len(tape), tape.last_seq, tape.gaps()) == (INSTANCE, 0, -1, [])
    assert list(tape.facts()) == list(tape.exchange_ids()) == []
    (found,) = gather(data := tape_bytes(), scan_whole(data)).tapes
    assert (found.instance, len(found)) == (INSTANCE, 0)


def test_a_content_is_the_same_each_time_it_is_read():
    base = Content.of(b"base")
    body = Content(digest_of(b"base and tail"), 13, b" and tail", base.digest, 4)
    tape = MemoryTape([fact(0, e.PLAYHEAD_READ, body=base), fact(1, e.PLAYHEAD_READ, body=body)])
    assert [tape.read(one) for one in (body, body, base, base)] == [b"base and tail"] * 2 + [b"base"] * 2


def test_an_exchange_knows_its_span_and_what_was_sent_before_each_part():
    said = [
        fact(
            0,
            e.PLAYHEAD_EXCHANGE_REQUEST,
            exchange=CALL,
            attributes={a.PLAYHEAD_ASK_KEY: "GET ws://x"},
            trace_id=b"t" * 16,
            span_id=b"s" * 8,
            body=Content.of(b""),
        )
    ]
    out = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out"}
    for seq, attributes in enumerate(({}, out, {}, out, out, {}), 1):
        body = Content.chunk(b"%d" % seq)
        said.append(fact(seq, e.PLAYHEAD_EXCHANGE_DATA, exchange=CALL, attributes=attributes, body=body))
    ended = {a.PLAYHEAD_END_HOW: "complete"}
    said.append(fact(7, e.PLAYHEAD_EXCHANGE_END, exchange=CALL, attributes=ended))
    exchange = MemoryTape(said).exchange(CALL)
    assert exchange is not None
    assert (exchange.trace_id, exchange.span_id) == (b"t" * 16, b"s" * 8)
    assert [part.after for part in exchange.parts] == [0, 1, 3]
    assert exchange.end is not None
    assert (exchange.end.after, len(exchange.sent), exchange.last_seq) == (3, 3, 7)


def test_what_is_missing_is_looked_for_where_it_may_be():
    with pytest.raises(TapeGap) as caught:
        MemoryTape([fact(1, e.PLAYHEAD_READ)]).require_whole()
    assert caught.value.hint == "look for undelivered facts: playhead spool push"


def test_a_tape_that_does_not_say_its_level_is_of_causal():
    assert level_of([]) == level_of([fact(0, e.PLAYHEAD_READ)]) == "causal"
    at = {a.PLAYHEAD_RUN_LEVEL: "strict"}
    assert level_of([fact(0, e.PLAYHEAD_PROCESS_START, attributes=at)]) == "strict"


def test_half_a_frame_is_told_from_one_that_was_changed():
    whole = tape_bytes(fact(0, e.PLAYHEAD_READ))
    scan = Scan(whole[:-1])
    list(scan)
    size = len(whole) - len(tape_bytes()) - HEAD.size
    assert scan.problem == f"half a frame: {size} bytes announced, {size - 1} there"
    scan = Scan(tape_bytes() + HEAD.pack(MAX_PAYLOAD_BYTES + 1, 0))
    list(scan)
    assert scan.problem == f"half a frame: {MAX_PAYLOAD_BYTES + 1} bytes announced, 0 there"


def test_each_frame_that_holds_no_record_is_counted_and_a_damaged_file_says_what_to_do():
    scan = Scan(tape_bytes() + 2 * (HEAD.pack(1, zlib.crc32(b"\xc0")) + b"\xc0"))
    list(scan)
    assert (scan.skipped, scan.torn) == (2, False)
    with pytest.raises(CorruptTape) as caught:
        list(read_whole(tape_bytes(fact(0, e.PLAYHEAD_READ))[:-1], "a.tape"))
    assert caught.value.hint == "keep what can be read: playhead import --partial a.tape"


def test_only_a_request_comes_to_the_program():
    into = {a.PLAYHEAD_EXCHANGE_DIRECTION: "in"}
    assert is_inbound(fact(0, e.PLAYHEAD_EXCHANGE_REQUEST, attributes=into))
    assert not is_inbound(fact(0, e.PLAYHEAD_EXCHANGE_REQUEST))
    assert not is_inbound(fact(0, e.PLAYHEAD_EXCHANGE_DATA, attributes=into))
    for direction in ("in", "out"):
        at = {a.PLAYHEAD_ASK_KEY: "GET /", a.PLAYHEAD_EXCHANGE_DIRECTION: direction}
        asked = fact(0, e.PLAYHEAD_EXCHANGE_REQUEST, exchange=CALL, attributes=at, body=Content.of(b""))
        exchange = MemoryTape([asked]).exchange(CALL)
        assert exchange is not None
        assert exchange.ask.direction == direction


def test_a_part_of_a_process_is_called_after_both():
    named = {part_of(one, trace) for one in (b"i" * 16, b"j" * 16) for trace in (b"t" * 16, b"u" * 16)}
    assert len(named) == 4
    assert {len(one) for one in named} == {16}
    assert without_parts([b"i" * 16, part_of(b"i" * 16, b"t" * 16)], b"t" * 16) == [b"i" * 16]


@pytest.mark.parametrize(("number", "taken"), [(2**63 - 1, True), (1 - 2**63, True), (-(2**63), False)])
def test_a_number_of_an_attribute_fits_every_database(number: int, taken: bool):
    at = {a.PLAYHEAD_PROCESS_EXIT_CODE: number}
    ended = fact(0, e.PLAYHEAD_PROCESS_EXIT, attributes=at)
    if taken:
        check_shape(ended)
    else:
        with pytest.raises(MalformedOtlp, match="out of range"):
            check_shape(ended)


@pytest.mark.parametrize(
    ("seq", "ordinal", "taken"),
    [
        (-1, 0, True),
        (2**63 - 1, 2**63 - 1, True),
        (-2, 0, False),
        (2**63, 0, False),
        (0, 2**63, False),
        (0, -1, False),
    ],
)
def test_numbers_of_facts_and_exchanges_fit_every_database(seq: int, ordinal: int, taken: bool):
    said = fact(0, e.PLAYHEAD_EXCHANGE_END, exchange=ExchangeId(7, "http", ordinal))
    said = msgspec.structs.replace(said, seq=seq)
    if taken:
        check_shape(said)
    else:
        with pytest.raises(MalformedOtlp, match="larger than any"):
            check_shape(said)


def test_what_is_too_short_for_a_record_is_none():
    payloads = (b"", b"\x9c", b"\x9c\x00", b"\x9c\x01", b"\x01\x00")
    assert [tag_of(memoryview(one)) for one in payloads] == [-1, -1, 0, 1, -1]


@pytest.mark.parametrize(
    ("data", "torn"), [(b"no tape of ours, but 30 bytes..", True), (bytes(64), False), (b"12", True)]
)
def test_what_does_not_begin_as_a_tape_is_none(data: bytes, torn: bool):
    scan = Scan(data)
    assert list(scan) == []
    assert (scan.torn, scan.too_new) == (torn, 0)
    assert scan.problem == "not a playhead tape (wrong first bytes)"


def test_a_few_zeros_behind_the_last_frame_are_no_damage():
    facts = exchange_facts()
    scan = Scan(tape_bytes(*facts) + b"\0\0\0")
    assert [record for _, record in scan][1:] == facts
    assert not scan.torn


def test_a_frame_that_the_data_ends_with_is_found_behind_damage():
    whole, last = tape_bytes(), encode(fact(0, e.PLAYHEAD_READ))
    assert next_frame(whole + b"damage" + last, len(whole)) == len(whole) + len(b"damage")


@pytest.mark.parametrize(
    ("offset", "taken"), [(0, True), (5, True), (-1, False), (True, False), ("0", False)]
)
def test_a_blob_says_at_which_byte_it_begins(offset: object, taken: bool):
    at = {a.PLAYHEAD_BLOB_DIGEST: "00" * 32, a.PLAYHEAD_BLOB_OFFSET: offset}
    blob = fact(0, e.PLAYHEAD_BLOB, attributes=at, body=Content.chunk(b"piece"))
    if taken:
        check_shape(blob)
    else:
        with pytest.raises(MalformedOtlp, match="offset"):
            check_shape(blob)
