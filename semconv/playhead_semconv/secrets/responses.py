"""What scrubs a response, by its content type and its content coding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from playhead_semconv.secrets.codings import Codec, codec
from playhead_semconv.secrets.event_frames import FrameScrubber
from playhead_semconv.secrets.finder import Finder
from playhead_semconv.secrets.scrubbing import PlainScrubber, Scrubber

EVENTS: Final = "text/event-stream"
FRAMES: Final = "application/vnd.amazon.eventstream"


def scrubber(
    finder: Finder,
    learn: Callable[[bytes], object],
    content_encoding: str = "",
    *,
    content_type: str = "",
) -> Scrubber:
    """Return the scrubber for one response.

    ``learn`` is called with values found by name or shape.
    """
    encoding = content_encoding.strip().lower()

    def plain(*, events: bool = True) -> Scrubber:
        return PlainScrubber(finder, learn, events=events)

    found = (
        FrameScrubber(plain(), plain())
        if content_type.startswith(FRAMES)
        else plain(events=content_type.startswith(EVENTS))
    )
    return found if encoding in ("", "identity") else _Coded(encoding, found)


class _Coded:
    """Scrubs a compressed response: decodes it, and encodes it again where something must change.

    If the first credential comes late, the data before it is on the tape already, as it came. The data
    after it is stored uncompressed; for readers of the tape `repacked` makes one compressed answer of
    both.
    """

    def __init__(self, encoding: str, plain: Scrubber) -> None:
        self.count = 0
        self.unpacked = ""
        self._encoding = encoding
        self._plain = plain
        self._codec = codec(encoding)
        self._pack: Codec | None = None
        self._untouched = 0

    def chunk(self, data: bytes) -> bytes:
        if self._codec is None:
            return data
        unpack, packer = self._codec
        try:
            text = unpack(data)
        except Exception:
            # Not encoded as the header says; the program's own decoder will not get text from it either.
            return data if not self.unpacked else b""
        kept = self._plain.chunk(text)
        self.count = self._plain.count
        if self.unpacked:
            return kept
        if kept == text and self._pack is None:
            self._untouched += 1
            return data
        if self._pack is None:
            if self._untouched:
                self.unpacked = self._encoding
                return kept
            self._pack = packer()
        return self._pack(kept)


def repacked(pieces: list[bytes], unpacked: list[str]) -> list[bytes]:
    """Return the pieces of one compressed answer, some of which are stored without their coding.

    ``unpacked``: for each piece, the content coding that it lacks; empty where it has it.
    """
    both = codec(next(filter(None, unpacked), ""))
    if both is None:
        return pieces
    unpack, packer = both
    pack = packer()
    texts = (one if lacks else unpack(one) for one, lacks in zip(pieces, unpacked, strict=True))
    return [pack(text) for text in texts]
