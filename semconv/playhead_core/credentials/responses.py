"""What scrubs a response, by its content type and its content coding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Final, TypeAlias

from playhead_core.credentials.codings import Decoder, codec
from playhead_core.credentials.event_frames import FrameScrubber
from playhead_core.credentials.finder import Finder
from playhead_core.credentials.scrubbing import PlainScrubber, Scrubber

EVENTS: Final = "text/event-stream"
FRAMES: Final = "application/vnd.amazon.eventstream"


Learn: TypeAlias = Callable[[bytes], object]
"""Is called with values found by name or shape."""


def scrubber(
    finder: Finder, learn: Learn, content_encoding: str = "", *, content_type: str = ""
) -> Scrubber:
    """Return the scrubber for one response."""
    return scrubbers(content_type, content_encoding)(finder, learn)


@lru_cache(64)
def scrubbers(content_type: str, content_encoding: str) -> Callable[[Finder, Learn], Scrubber]:
    """Return what makes the scrubbers of such responses. A program gets few kinds of them."""
    plain = (
        _framed
        if content_type.startswith(FRAMES)
        else partial(PlainScrubber, events=content_type.startswith(EVENTS))
    )
    if not content_encoding or codec(content_encoding) is None:
        return plain
    return partial(_coded, content_encoding, plain)


def _framed(finder: Finder, learn: Learn) -> Scrubber:
    return FrameScrubber(*(PlainScrubber(finder, learn, events=True) for _ in range(2)))


def _coded(
    content_encoding: str, plain: Callable[[Finder, Learn], Scrubber], finder: Finder, learn: Learn
) -> Scrubber:
    both = codec(content_encoding)
    assert both is not None
    return _Coded(both[0], plain(finder, learn))


class _Coded:
    """Scrubs a compressed response: decodes it, and stores it decoded where something must change.

    What came before the first credential is on the tape already, as it came. For readers of the tape,
    `repacked` makes one compressed answer of both.
    """

    def __init__(self, decoder: Decoder, plain: Scrubber) -> None:
        self.count = 0
        self.unpacked = ""
        self._plain = plain
        self._unpack = decoder
        self._damaged = False

    def chunk(self, data: bytes) -> bytes:
        text = self._text(data)
        if text is None:
            # Not encoded as the header says: a program that decodes nothing gets the bytes as they are.
            kept = b"" if self.unpacked else self._plain.chunk(data)
            self.count = self._plain.count
            return kept
        kept = self._plain.chunk(text)
        self.count = self._plain.count
        if kept == text and not self.unpacked:
            return data
        self.unpacked = self._unpack.coding
        return kept

    def _text(self, data: bytes) -> bytes | None:
        try:
            return None if self._damaged else self._unpack(data)
        except Exception:  # each coding raises exceptions of its own
            self._damaged = True
            return None


def decoded(
    pieces: Sequence[bytes], unpacked: Sequence[str], encoding: str = ""
) -> tuple[list[bytes], str]:
    """Return the pieces of one compressed answer, decoded, and the content coding that they had.

    ``unpacked``: for each piece, the content coding that it lacks; empty if it has it. ``encoding``:
    of the answer, if all pieces have it. Raises what the library of the coding raises, and ValueError
    for a coding that is unknown here.
    """
    lacking = next(filter(None, unpacked), "")
    both = codec(lacking or encoding)
    if both is None:
        raise ValueError(f"unknown content coding {lacking or encoding}")
    unpack = both[0]
    texts = [one if lacks else unpack(one) for one, lacks in zip(pieces, unpacked, strict=True)]
    return texts, lacking or unpack.coding


def repacked(
    pieces: Sequence[bytes], unpacked: Sequence[str], encoding: str = "", *, complete: bool
) -> list[bytes]:
    """Return the pieces of one compressed answer, some of which are stored without their coding.

    The arguments and errors are those of `decoded`. ``complete``: the compressed data comes to an end,
    so that every client reads the answer to its end.
    """
    texts, coding = decoded(pieces, unpacked, encoding)
    both = codec(coding)
    assert both is not None
    encoder = both[1]()
    packed = [encoder.pack(text) for text in texts]
    if complete and packed:
        packed[-1] += encoder.finish()
    return _none_empty(packed)


def _none_empty(pieces: list[bytes]) -> list[bytes]:
    """Return the same bytes, cut so that pieces without data get two of the next one with enough.

    A piece is one delivery; a reader takes an empty one for the end. Some readers need two bytes to
    recognize the coding.
    """
    first = 0
    for index, piece in enumerate(pieces):
        taken = 2 * (index - first)
        if len(piece) > taken > 0:
            pieces[first:index] = [piece[at : at + 2] for at in range(0, taken, 2)]
            pieces[index] = piece[taken:]
        if piece:
            first = index + 1
    return pieces
