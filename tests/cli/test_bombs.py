"""Small files that grow large: what they take of memory and processor time has a bound."""

import gzip
import json
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from support.starting.measured import measured
from support.tapes.handmade import HandMade

from playhead_core.errors import CorruptTape
from playhead_core.tape.frames import WHOLE, Footer, Header, SpanRecord, encode
from playhead_core.tape.frames_text import from_text, to_text
from playhead_receiver.storage.content.compressed_frames import decompress

PACKED_BYTES = 1 << 20
PEAK_BYTES = 400 << 20
PROCESSOR_S = 60
GZIP = b"\x1f\x8b\x08" + bytes(7)


def packed(head: bytes, piece: bytes) -> bytes:
    """The head, and the piece as often as packs into a mebibyte."""
    many = piece * max(1, (8 << 20) // len(piece))
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    first, again = (packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH) for part in (head, many))
    times = PACKED_BYTES // len(again) + 1
    checksum = zlib.crc32(head)
    for _ in range(times):
        checksum = zlib.crc32(many, checksum)
    end = struct.pack("<II", checksum, (len(head) + times * len(many)) & 0xFFFFFFFF)
    return GZIP + first + again * times + packer.flush() + end


def zeros() -> bytes:
    return packed(WHOLE, bytes(1 << 20))


def one_fact_again() -> bytes:
    made = HandMade().start()
    return packed(WHOLE + encode(Header(made.instance, 0)), encode(made.facts[-1]))


def exchanges() -> bytes:
    made = HandMade().start()
    start = len(made.facts)
    for _ in range(2000):
        made.exchange(chunks=(b"x",))
    frames = b"".join(map(encode, made.facts[start:]))
    return packed(WHOLE + encode(Header(made.instance, 0)), frames)


def spans() -> bytes:
    made = HandMade().start()
    made.chat()
    frame = encode(SpanRecord(made.spans[0].otlp))
    return packed(WHOLE + encode(Header(made.instance, 0)), frame)


def processes() -> bytes:
    frames = b"".join(encode(Header(number.to_bytes(16, "big"), 0)) for number in range(100_000))
    return packed(WHOLE, frames)


def text() -> bytes:
    made = HandMade().start()
    made.chat()
    first, second = (to_text([Header(made.instance, 0), *made.facts[:n]]) for n in (4, 6))
    return packed(first.encode(), second[len(first) :].encode())


def line() -> bytes:
    return packed(b'{"resourceSpans": [', b'{"scopeSpans": []}, ')


def lines() -> bytes:
    one = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "ab" * 16, "spanId": "cd" * 8}]}]}]}
    return packed(b"", json.dumps(one).encode() + b"\n")


BOMBS: dict[str, Callable[[], bytes]] = {
    "zeros.tape.gz": zeros,
    "fact.tape.gz": one_fact_again,
    "exchanges.tape.gz": exchanges,
    "spans.tape.gz": spans,
    "processes.tape.gz": processes,
    "text.tape.gz": text,
    "line.otlp.jsonl.gz": line,
    "lines.otlp.jsonl.gz": lines,
}


COMMANDS = ("import", "import --partial", "show")
EACH = [
    pytest.param(
        name,
        command,
        marks=() if command == "import" or name == "exchanges.tape.gz" else pytest.mark.acceptance,
    )
    for name in BOMBS
    for command in COMMANDS[: None if ".tape" in name else 1]
]


@pytest.mark.parametrize(("name", "command"), EACH)
def test_a_bomb_is_refused_in_bounded_memory_and_time(tmp_path: Path, name: str, command: str):
    bomb = tmp_path / name
    bomb.write_bytes(BOMBS[name]())
    assert bomb.stat().st_size < 2 * PACKED_BYTES
    done = measured(tmp_path / "data", *command.split(), str(bomb))
    taken = name.startswith("exchanges") and "--partial" in command
    assert taken or done.err.startswith("error[tape-corrupt]: " + name), done
    assert done.status == 1, done
    assert done.peak_bytes < PEAK_BYTES, done
    assert done.processor_s < PROCESSOR_S, done


def test_a_frame_of_a_store_that_says_it_is_endless_is_damaged(tmp_path: Path):
    endless = b"\x28\xb5\x2f\xfd\xe0" + (1 << 60).to_bytes(8, "little") + bytes(16)
    with pytest.raises(CorruptTape, match="a frame is damaged"):
        decompress(endless)


def test_what_packs_well_is_no_bomb(tmp_path: Path):
    made = HandMade().start()
    for _ in range(50):
        made.chat(request=b'{"model":"m","x":"' + b"a" * 100_000 + b'"}')
    made.exit()
    run = tmp_path / "run.tape.gz"
    facts = b"".join(map(encode, made.facts))
    whole = WHOLE + encode(Header(made.instance, 0)) + facts + encode(Footer(len(made.facts), 0))
    run.write_bytes(gzip.compress(whole))
    assert len(whole) > 100 * run.stat().st_size
    assert measured(tmp_path / "data", "show", str(run)).status == 0


def test_a_long_golden_is_read_in_one_go(tmp_path: Path):
    """Once through the text, not once for each record."""
    made = HandMade().start()
    for _ in range(20_000):
        made.say("x")
    text = to_text([Header(made.instance, 0), *made.facts])
    began = time.process_time()
    assert len(list(from_text(text))) == len(made.facts) + 1
    assert time.process_time() - began < 20
