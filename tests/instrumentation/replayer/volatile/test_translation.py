"""Recorded values in played answers become those of now."""

from __future__ import annotations

import random
import uuid
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from support.tapes.volatile import Replay

WAS = "0d6f0a1e-5b1c-4c63-9a53-0f3f6b7f3c11"


def accepted(*recorded: str) -> tuple[Replay, list[str]]:
    """A replay in which each of these stands for a draw."""
    replay = Replay()
    now: list[str] = []
    for seed, one in enumerate(recorded):
        data = replay.draws(16, seed)
        if len(one) == 36:
            now.append(str(uuid.UUID(bytes=data, version=4)))
        else:
            now.append(data.hex()[: len(one)])
        replay.accepts(one, now[-1])
    return replay, now


def test_an_answer_that_repeats_an_id():
    replay, (now,) = accepted(WAS)
    answer = '{{"id": "{}", "other": "0d6f0a1e", "again": "x{}y"}}'
    assert (
        replay.volatile.translated(answer.format(WAS, WAS).encode()) == answer.format(now, now).encode()
    )


def test_nothing_is_known_yet():
    assert Replay().volatile.translated(WAS.encode()) == WAS.encode()


def test_values_of_another_length_stay():
    replay = Replay()
    drawn = int.from_bytes(replay.draws(16), "big")
    replay.handed_out.note_number(drawn, bits=128)
    shorter = 12_345_678_901_234_567_890_123_456_789_012_345_678
    replay.accepts({"n": shorter}, {"n": drawn})
    assert len(str(drawn)) == 39
    assert replay.volatile.translated(str(shorter).encode()) == str(shorter).encode()


def test_instants_and_durations_of_an_answer_are_the_servers_own():
    replay = Replay()
    replay.reads(4.0)
    replay.accepts("2026-11-22T10:00:07.123456", "2026-11-22T10:00:04.000000")
    answer = b"created 2026-11-22T10:00:07.123456"
    assert replay.volatile.translated(answer) == answer


def test_the_longest_value_counts():
    replay, (short, long) = accepted("0d6f0a1e", "0d6f0a1e5b1c4c639a530f3f6b7f3c11")
    text = "0d6f0a1e 0d6f0a1e5b1c4c639a530f3f6b7f3c11 0d6f0a1e5b1c"
    assert replay.volatile.translated(text.encode()).decode() == f"{short} {long} {short}5b1c"


def test_a_value_that_chunks_part():
    replay, (now,) = accepted(WAS)
    stream = replay.volatile.stream()
    assert stream.feed(b'data: {"id": "') == b'data: {"id": "'
    assert stream.feed(WAS[:9].encode()) == b""
    assert stream.feed(WAS[9:].encode()) == now.encode()
    assert stream.feed(b"\n\ndata: 0d6f") == b"\n\ndata: "
    assert stream.feed(b"0") == b""
    assert stream.feed(b"x") == b"0d6f0x"
    assert stream.flush() == b""


def test_only_what_may_begin_a_value_is_held_back():
    replay, _ = accepted(WAS)
    stream = replay.volatile.stream()
    for chunk in (b"hello", b" world 1", b"0d6f0a1f", b"\n\n", b"d6f0a1e-"):
        assert stream.feed(chunk) == chunk
    assert stream.feed(b"0") == b""
    assert stream.flush() == b"0"
    assert stream.feed(WAS.encode()[:-1]) == b""
    assert stream.flush() == WAS.encode()[:-1]


def test_parts_stay_as_long_as_they_are_and_come_as_soon_as_they_can():
    replay, (now,) = accepted(WAS)
    text = f"data: {WAS}\n\ndata: {WAS[:20]}"
    cuts = [0, 3, 10, 10, 20, 45, 50, len(text)]
    parts = [text[start:end].encode() for start, end in pairwise(cuts)]
    asked: list[bytes] = []

    def recorded():
        for part in parts:
            asked.append(part)
            yield part

    translated = replay.volatile.translated_parts(recorded())
    assert next(translated) == parts[0]
    assert asked == parts[:1]
    found = [parts[0], *translated]
    assert [len(part) for part in found] == [len(part) for part in parts]
    assert b"".join(found) == text.replace(WAS, now).encode()


def test_a_value_that_is_accepted_meanwhile():
    replay, _ = accepted()
    stream = replay.volatile.stream()
    assert stream.feed(WAS.encode()) == WAS.encode()
    now = str(uuid.UUID(bytes=replay.draws(16), version=4))
    replay.accepts(WAS, now)
    assert stream.feed(WAS.encode()) == now.encode()


RECORDED = ("0d6f0a1e", "0d6f0a1e5b1c4c639a530f3f6b7f3c11", "11110d6f", "6f3c1111", "0d6f0d6f")
REPLAY, NOW = accepted(*RECORDED)


@given(
    st.lists(st.sampled_from([*RECORDED, "0d6f", "1", "11", " ", "0", "d6f0a1e5b1c", "xyz\n"])),
    st.data(),
)
def test_chunks_make_no_difference(words: list[str], data: st.DataObject):
    text = "".join(words).encode()
    whole = REPLAY.volatile.translated(text)
    assert len(whole) == len(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parts = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
    stream = REPLAY.volatile.stream()
    assert b"".join([*map(stream.feed, parts), stream.flush()]) == whole
    found = list(REPLAY.volatile.translated_parts(iter(parts)))
    assert [len(part) for part in found] == [len(part) for part in parts]
    assert b"".join(found) == whole


def test_what_is_replaced_is_what_a_plain_search_finds():
    draw = random.Random(1)
    recorded = [draw.randbytes(16).hex() for _ in range(200)]
    replay, now = accepted(*recorded)
    words = [draw.choice([*recorded, "and", "00", " "]) for _ in range(5000)]
    expected = [dict(zip(recorded, now, strict=True)).get(word, word) for word in words]
    assert replay.volatile.translated("".join(words).encode()) == "".join(expected).encode()
