"""Finds the recorded call that answers a request: by all it asks, by its messages, or by order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from playhead_genai.rebuilding.calls import Asked

EXACTLY: Final = "messages, model and tools"
BY_MODEL: Final = "messages and model"
BY_MESSAGES: Final = "messages"
BY_ORDER: Final = "order only"

WAYS: Final = (EXACTLY, BY_MODEL, BY_MESSAGES, BY_ORDER)
"""How a request may be matched with a call, the most certain first."""


def likeness(recorded: Asked, now: Asked) -> str | None:
    """Return in what two requests agree, as one of `WAYS`; None: nothing that answers the other.

    Requests agree by order if one of them does not say its messages, or says other ones.
    """
    if recorded.embeds != now.embeds:
        return None
    if not recorded.messages or recorded.messages != now.messages:
        return BY_ORDER
    if not same_model(recorded.model, now.model):
        return BY_MESSAGES
    return EXACTLY if recorded.tools == now.tools else BY_MODEL


def same_model(recorded: str, now: str) -> bool:
    """Whether two names are of one model: a span may name it with its provider or its version."""
    left, right = sorted((_bare(recorded), _bare(now)), key=len)
    return left == right or (bool(left) and right.startswith(f"{left}-"))


def _bare(model: str) -> str:
    return model.rpartition("/")[2].lower()


class RecordedCalls:
    """The calls of a run, each of which answers once. Safe from any thread."""

    def __init__(self, calls: Sequence[tuple[Asked, bool]]) -> None:
        """``calls``: requests in the order in which they were made, and whether each failed."""
        self._calls = calls
        self._used: set[int] = set()
        self._lock = threading.Lock()

    def take(self, now: Asked, *, by_order: bool = True) -> tuple[int, str] | None:
        """Return the number of the call that answers, and in what it agrees; None: none is left.

        A call that failed answers the same request again: an SDK repeats it. ``by_order``: whether the
        next unused call may answer where no messages agree.
        """
        with self._lock:
            for failed in (False, True):
                for way in WAYS[:-1]:
                    found = self._first(now, way, failed=failed)
                    if found is not None:
                        self._used.add(found)
                        return found, way
            found = self._next(now) if by_order else None
            if found is None:
                return None
            self._used.add(found)
            return found, BY_ORDER

    def _first(self, now: Asked, way: str, *, failed: bool) -> int | None:
        for number, (recorded, has_failed) in enumerate(self._calls):
            allowed = has_failed if failed else number not in self._used
            if allowed and likeness(recorded, now) == way:
                return number
        return None

    def _next(self, now: Asked) -> int | None:
        """Return the next unused call, of the same model before others."""
        unused = [
            number
            for number, (recorded, _) in enumerate(self._calls)
            if number not in self._used and likeness(recorded, now) == BY_ORDER
        ]
        alike = (number for number in unused if same_model(self._calls[number][0].model, now.model))
        return next(alike, unused[0] if unused else None)
