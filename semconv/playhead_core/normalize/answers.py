"""The program's answer to a request that it received, in the form used for comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from playhead_core.normalize.comparison import ComparedRequest


def answer(headers: Sequence[str], pieces: Iterable[bytes]) -> ComparedRequest:
    """``headers``: name, value, name, value, …; ``pieces``: of the body, uncompressed."""
    named = zip(headers[::2], headers[1::2], strict=False)
    return ComparedRequest.of(b"".join(pieces), "", [(f"header {name}", value) for name, value in named])
