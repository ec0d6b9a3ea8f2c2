"""Request bodies that extend an earlier one of the process: a reference, a tail and a digest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from playhead_instrumentation.runtime.real_clock import REAL
from playhead_semconv.facts import Content, digest_of

SMALL_BYTES = 512
"""A body that is not larger is written whole."""

KEPT_BYTES = 8 << 20
"""Earlier bodies that are kept in memory to be compared with."""

COMPARED = 8
"""How many of the latest bodies a new one is compared with."""

GAIN = 4
"""An extension is worth it when its base saves at least a quarter of the body."""


AFRESH_S = 600.0
"""So long bodies go on from earlier ones; then the next is whole. Where the run of the first was deleted
meanwhile, no more than the requests of these minutes are lost with it."""

NEAR_BYTES = 64
"""How much less of a body may be shared for it to go on from an earlier one."""


Redact = Callable[[bytes, int], tuple[bytes, int]]
"""A body, and up to where it is known to hold no credential → the body without, and how many it held."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a body goes on from: the first ``shared`` bytes of another one."""

    digest: bytes
    shared: int
    above: _Origin | None
    """What that one goes on from."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """An earlier body."""

    body: bytes
    written: bytes
    """Without its credentials; the same object where it holds none."""
    content: Content
    count: int
    """How many credentials it holds."""
    origin: _Origin | None


class Bodies:
    """The latest request bodies. Safe from any thread: a lost update only costs bytes."""

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
        """``body`` as it goes on tape, as content, and how many credentials were taken out.

        The content is whole, or an extension of an earlier body of this process. Only what is new in it
        is searched for credentials.
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
        """The next is whole. After a fork: what the parent wrote is not on this instance's tape."""
        self._latest: OrderedDict[bytes, _Kept] = OrderedDict()
        self._bytes = 0
        self._since_s = self._now_s()

    def _nearest(self, body: bytes) -> tuple[_Kept | None, int]:
        """The kept body that shares the longest beginning with ``body``, and its length in bytes."""
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
    """The first body that has the first ``shared`` bytes of ``base``, or nearly.

    Bodies that share a prompt all go on from one, not each from the last: to read it takes one step, and
    one is kept for all of them.
    """
    digest, above, taken = base.content.digest, base.origin, shared
    while above is not None and shared - above.shared <= NEAR_BYTES:
        digest, taken, above = above.digest, min(taken, above.shared), above.above
    return _Origin(digest, taken, above)


def common_prefix(left: bytes, right: bytes, at_least: int = 0) -> int:
    """How many bytes two bodies share from the start; 0 where it is not more than ``at_least``.

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
