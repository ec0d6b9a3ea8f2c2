"""Request bodies written as extensions of earlier ones of the process: a reference, a tail, a digest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from playhead_core.facts import Content, digest_of
from playhead_instrumentation.patching.unpatched import REAL

SMALL_BYTES = 512
"""A body of at most this size is written whole."""

KEPT_BYTES = 8 << 20
"""Total size of the earlier bodies that are kept in memory for comparison."""

COMPARED = 8
"""How many of the latest bodies a new one is compared with."""

GAIN = 4
"""A body is written as an extension if its base saves at least a quarter of it (1 / ``GAIN``)."""


AFRESH_S = 600.0
"""Seconds for which bodies extend earlier ones; then the next body is written whole. If the run of the
first body is deleted meanwhile, only the requests of this period are lost with it."""

NEAR_BYTES = 64
"""How many shared bytes may be given up in order to extend an earlier body in the chain."""


Redact = Callable[[bytes, int], tuple[bytes, int]]
"""(body, length of its start that holds no credential) → (body without credentials, their count)."""


class _Origin(msgspec.Struct, frozen=True):
    """What a body extends: the first ``shared`` bytes of another body."""

    digest: bytes
    shared: int
    above: _Origin | None
    """What that other body extends."""


class _Kept(msgspec.Struct, frozen=True):
    """An earlier body."""

    body: bytes
    written: bytes
    """``body`` without its credentials; the same object if it holds none."""
    content: Content
    count: int
    """Number of credentials in ``body``."""
    origin: _Origin | None


class Bodies:
    """The latest request bodies. Usable from any thread: a lost update only costs bytes on the tape."""

    def __init__(
        self,
        redact: Redact,
        kept_bytes: int = KEPT_BYTES,
        now_s: Callable[[], float] = REAL.now_s,
    ) -> None:
        self._redact = redact
        self._kept_bytes = kept_bytes
        self._now_s = now_s
        self.forget()

    def written(self, body: bytes) -> tuple[bytes, Content, int]:
        """``body`` as it goes on tape, its content, and the number of credentials that were removed.

        The content is either whole or an extension of an earlier body of this process. Only the new part
        of a body is searched for credentials.
        """
        if len(body) <= SMALL_BYTES:
            written, count = self._redact(body, 0)
            return written, Content(digest_of(written), len(written), written), count
        if self._now_s() - self._since_s > AFRESH_S:
            self.forget()
        own = digest_of(body)
        known = self._latest.get(own)
        if known is not None:
            return known.written, known.content, known.count
        base, shared = self._nearest(body)
        clean = base is not None and base.written is base.body
        written, count = self._redact(body, shared if clean else 0)
        if base is not None and not (clean and written is body):
            shared = common_prefix(base.written, written)
        digest, size = own if written is body else digest_of(written), len(written)
        origin: _Origin | None = None
        if base is None or shared * GAIN < size or base.content.digest == digest:
            content = Content(digest, size, written)
        else:
            origin = _first_of(base, shared)
            shared = origin.shared
            content = Content(digest, size, written[shared:], origin.digest, shared)
        self._keep(own, _Kept(body, written, content, count, origin))
        return written, content, count

    def forget(self) -> None:
        """Write the next body whole. Needed after a fork: bodies of the parent are on another tape."""
        self._latest: OrderedDict[bytes, _Kept] = OrderedDict()
        self._bytes = 0
        self._since_s = self._now_s()

    def _nearest(self, body: bytes) -> tuple[_Kept | None, int]:
        """The kept body with the longest common prefix with ``body``, and the length of that prefix."""
        best, longest = None, 0
        for earlier in reversed(list(self._latest.values())[-COMPARED:]):
            shared = common_prefix(earlier.body, body, longest)
            if shared > longest:
                best, longest = earlier, shared
                if shared * 10 >= len(earlier.body) * 9:
                    break
        return best, longest

    def _keep(self, digest: bytes, kept: _Kept) -> None:
        latest = self._latest
        latest[digest] = kept
        self._bytes += len(kept.body)
        while self._bytes > self._kept_bytes and len(latest) > 1:
            try:
                _, dropped = latest.popitem(last=False)
            except KeyError:
                return
            self._bytes -= len(dropped.body)


def _first_of(base: _Kept, shared: int) -> _Origin:
    """The earliest body in the chain of ``base`` that has (nearly) the first ``shared`` bytes of it.

    Bodies with a common prompt all extend the same body, not each the one before: a reader then needs
    one step, and one base is stored for all of them.
    """
    digest, above, taken = base.content.digest, base.origin, shared
    while above is not None and shared - above.shared <= NEAR_BYTES:
        digest, taken, above = above.digest, min(taken, above.shared), above.above
    return _Origin(digest, taken, above)


def common_prefix(left: bytes, right: bytes, at_least: int = 0) -> int:
    """Length of the common prefix of two bodies; 0 if it is not longer than ``at_least``.

    >>> common_prefix(b"abcdef", b"abcxef")
    3
    >>> common_prefix(b"abcdef", b"abcxef", 3)
    0
    """
    low, high = at_least, min(len(left), len(right))
    if low >= high or left[:low] != right[:low]:
        return 0
    if right.startswith(left[:high]):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low if low > at_least else 0
