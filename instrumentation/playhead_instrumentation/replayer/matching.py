"""How a request finds its recording: by digests of its body, by its canonical form, or for reuse.

Most recordings answer one request (`recorder.unused`). A reusable response, such as an opened connection
of a pool, answers as often as it is requested (`ReusableResponses`).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Hashable
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from playhead_core.facts import Ask, Exchange
from playhead_core.normalize.documents import with_fixed_boundary
from playhead_core.normalize.tracebacks import reduced_body
from playhead_semconv import attributes as a


def digests_of(ask: Ask) -> list[bytes]:
    """The digests under which a request is found.

    They are the digest of the body that was sent, the digest of the body that the program made where a
    fork edited it, and the keyed digest of the redacted parts.
    """
    edited = ask.details.get(a.PLAYHEAD_EDITED_DIGEST)
    digests = [bytes.fromhex(str(edited)), ask.body.digest] if edited else [ask.body.digest]
    keyed: Any = ask.details.get(a.PLAYHEAD_REDACTED_DIGEST)
    return [*digests, b"keyed " + str(keyed).encode()] if keyed else digests


def is_standing(ask: Ask, *, serves: bool = True) -> bool:
    """Whether what is asked stays for later asks, as a connection in a pool.

    ``serves``: within a service; else among the threads of a program.
    """
    return ask.details.get(a.PLAYHEAD_ASK_STANDING) in (
        ("service", "program") if serves else ("program",)
    )


def canonical(body: bytes) -> bytes:
    """The same bytes for bodies with the same meaning.

    JSON: sorted keys, no whitespace. Multipart: without the boundary, which differs each time.
    Tracebacks: see `reduced_body`.
    """
    body = reduced_body(body)
    if body[:1] in (b"{", b"["):
        try:
            return json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode()
        except ValueError:
            return body
    return with_fixed_boundary(body)


def host_of(key: str) -> str:
    """The host in a key of method and URL; empty where there is none."""
    return urlsplit(key.partition(" ")[2]).hostname or ""


def is_encoded(exchange: Exchange) -> bool:
    """Whether the bytes of an answer are compressed."""
    flat: list[Any] = exchange.head.get(a.PLAYHEAD_HTTP_HEADERS) or []
    return any(str(name).lower() == "content-encoding" for name in flat[::2])


def is_model_call(key: str, body: bytes) -> bool:
    """Whether a request is a call of a model, by its method, URL and body."""
    from playhead_genai.providers.recognition import (
        recognised,  # imported late: a replay needs it rarely
    )

    method, _, url = key.partition(" ")
    return recognised(method, url, body) is not None


Asked = TypeVar("Asked", bound=Hashable)


class _OfLane:
    """The recordings of one lane for one question."""

    __slots__ = ("in_order", "last")

    def __init__(self) -> None:
        self.in_order: deque[int | None] = deque()
        self.last: int | None = None
        """The last that stands."""


class ReusableResponses(Generic[Asked]):
    """Numbers of recordings, by question and lane.

    A lane gets its own in order, and the last of them as often as it asks. A lane without any gets what
    stood when the first that had asked was done. What failed answers once, where it failed, and is not
    given here: it is found as any other recording is.
    """

    def __init__(self) -> None:
        self._found: dict[Asked, dict[int, _OfLane]] = {}

    def add(self, asked: Asked, lane: int, number: int | None) -> None:
        """Add the next recording of a lane; None: it failed."""
        of_lane = self._found.setdefault(asked, {}).setdefault(lane, _OfLane())
        of_lane.in_order.append(number)
        of_lane.last = of_lane.last if number is None else number

    def answer(self, asked: Asked, lane: int) -> int | None:
        """The recording that answers; None: none stands, or the next of this lane failed."""
        by_lane = self._found.get(asked)
        if by_lane is None:
            return None
        own = by_lane.get(lane)
        if own is not None and own.in_order:
            return own.in_order.popleft()
        if own is not None and own.last is not None:
            return own.last
        return next((one.last for one in by_lane.values() if one.last is not None), None)
