"""Single zstd frames: what is not one whole frame that declares its size is refused."""

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from playhead_core.zstd_frames import DamagedFrame, compress, compressor, decompress

DATA = b"what was said " * 40
UNKNOWN = zstandard.ZstdCompressor(write_content_size=False).compress(DATA)
FLIPPED = bytearray(compressor(3, checksum=True)(DATA))
FLIPPED[-1] ^= 1


@given(st.lists(st.binary(max_size=2000), min_size=1), st.sampled_from((1, 3, 9)), st.booleans())
def test_frames_of_one_compressor_are_whole_and_as_other_libraries_make_them(parts, level, checksum):
    pack = compressor(level, checksum=checksum)
    other = zstandard.ZstdCompressor(level=level, write_checksum=checksum)
    for part in parts:
        assert decompress(pack(part), len(part)) == part
        assert pack(part) == other.compress(part)
        assert decompress(compress(part, level), len(part)) == part


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "frame"),
        (b"no frame at all", "frame"),
        (compress(DATA, 3)[:-3], "cut off"),
        (compress(DATA, 3) + b"x", "follow"),
        (compress(DATA, 3) * 2, "follow"),
        (UNKNOWN, "does not declare its size"),
        (compress(DATA + b"1", 3), f"{len(DATA)} are the most"),
        (bytes(FLIPPED), "checksum"),
    ],
    ids="empty other cut followed twice unknown larger checksum".split(),
)
def test_other_bytes_are_refused(data: bytes, said: str):
    with pytest.raises(DamagedFrame, match=said):
        decompress(data, len(DATA))
