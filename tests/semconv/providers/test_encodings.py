"""Content encodings: whole, in pieces, truncated, damaged, unknown."""

import gzip
import sys
import zlib

import brotli
import pytest
import zstandard

from playhead_genai.providers import decode_body
from playhead_genai.providers.encodings import LIMIT_BYTES

TEXT = b"".join(b"line %d of a body that compresses well\n" % i for i in range(2000))


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


ENCODED = {
    "gzip": gzip.compress(TEXT, mtime=0),
    "x-gzip": gzip.compress(TEXT, mtime=0),
    "deflate": zlib.compress(TEXT),
    "DEFLATE": raw_deflate(TEXT),
    "zstd": zstandard.ZstdCompressor().compress(TEXT),
    "br": brotli.compress(TEXT),
    "identity": TEXT,
    "": TEXT,
}


def headers(encoding: str) -> list[tuple[str, str]]:
    return [("Content-Type", "text/plain"), ("Content-Encoding", encoding)]


@pytest.mark.parametrize("encoding", ENCODED)
def test_whole(encoding: str):
    data = ENCODED[encoding]
    assert decode_body(headers(encoding), [data]) == (TEXT, "")
    assert decode_body(headers(encoding), [data[i : i + 7] for i in range(0, len(data), 7)]) == (
        TEXT,
        "",
    )


def test_without_a_header_nothing_is_decoded():
    assert decode_body([], [b"a", b"b"]) == (b"ab", "")
    assert decode_body(headers("gzip"), []) == (b"", "")


def test_several_encodings_are_undone_in_reverse():
    data = zlib.compress(gzip.compress(TEXT))
    assert decode_body(headers("gzip, deflate"), [data]) == (TEXT, "")
    twice = [("content-encoding", "gzip"), ("content-encoding", "deflate")]
    assert decode_body(twice, [data]) == (TEXT, "")


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_several_members(compress):
    encoding = "gzip" if compress is gzip.compress else "zstd"
    assert decode_body(headers(encoding), [compress(b"one, "), compress(b"two")]) == (b"one, two", "")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "DEFLATE", "br"])
def test_truncated_gives_what_could_be_decoded(encoding: str):
    data = ENCODED[encoding]
    body, problem = decode_body(headers(encoding), [data[: len(data) // 2]])
    assert problem == f"truncated {encoding.lower()} data"
    assert TEXT.startswith(body)
    assert len(body) > len(TEXT) // 4


def test_a_truncated_zstd_stream_gives_its_whole_blocks():
    stream = zstandard.ZstdCompressor().compressobj()
    data = stream.compress(TEXT) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    assert decode_body(headers("zstd"), [data]) == (TEXT, "truncated zstd data")


def test_damaged_gives_what_came_before():
    data = bytearray(gzip.compress(bytes(range(256)) * 400, compresslevel=0))
    data[70000:70010] = b"\xff" * 10
    body, problem = decode_body(headers("gzip"), [bytes(data[:65000]) + b"\xff" * 9000])
    assert problem == "damaged gzip data"
    assert (bytes(range(256)) * 400).startswith(body[:60000])
    assert len(body) > 60000


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_without_a_decoder_it_is_said(encoding: str, monkeypatch: pytest.MonkeyPatch):
    for name in ("brotli", "brotlicffi", "zstandard", "compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    problem = f"content encoding {encoding} cannot be decoded here"
    assert decode_body(headers(encoding), [ENCODED[encoding]]) == (b"", problem)


def test_an_encoding_that_is_not_known_is_said():
    assert decode_body(headers("compress"), [b"x"]) == (
        b"",
        "content encoding compress cannot be decoded here",
    )


def test_a_body_that_explodes_is_cut():
    body, problem = decode_body(headers("gzip"), [gzip.compress(bytes(LIMIT_BYTES * 2))])
    assert problem == f"more than {LIMIT_BYTES} bytes of gzip data"
    assert LIMIT_BYTES < len(body) < LIMIT_BYTES + (2 << 20)
