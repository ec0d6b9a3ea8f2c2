"""The parts of a played answer, with recorded values replaced by values of now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator


class TranslatedParts:
    """Parts by index, each of its recorded length. Safe from any thread."""

    def __init__(
        self, parts: Iterable[bytes], translated: Callable[[Iterable[bytes]], Iterator[bytes]]
    ) -> None:
        """``parts``: as recorded; read only as far as needed."""
        self._lock = threading.Lock()
        self._left = translated(parts)
        self._ready: list[bytes] = []

    def __call__(self, index: int) -> bytes:
        """The bytes of the part with this index."""
        with self._lock:
            while index >= len(self._ready):
                self._ready.append(next(self._left))
            return self._ready[index]
