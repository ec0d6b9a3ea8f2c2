"""Find loops in what a run requests: the same requests again and again, with the same results between.

A request of a model repeats the whole conversation, so that no two are equal. What counts is what it
adds: the calls of the last answer with their results, without ids. So a loop has equal arguments and
equal results; an agent that polls gets other results, and one that pages asks with other arguments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any, Final, cast

import msgspec

from playhead_core.facts import digest_of

REPEATS: Final = 3
"""So many equal rounds are a loop."""
LONGEST_PERIOD: Final = 6
"""Requests of a round at most."""

_HISTORIES: Final = ("messages", "input", "contents")
"""Fields of a request of a model that hold the conversation."""
_IDS: Final = frozenset(("id", "tool_call_id", "call_id", "tool_use_id"))


class LoopFinder:
    """Takes the requests of one run in their order."""

    def __init__(self) -> None:
        self._last: deque[Hashable] = deque(maxlen=REPEATS * LONGEST_PERIOD)
        self._goes_on: deque[bool] = deque(maxlen=REPEATS * LONGEST_PERIOD)
        self._items: list[int] = []
        """Hashes of the messages that the last request of a model had."""

    def add(self, kind: str, key: str, body: bytes) -> None:
        """Add a request. ``key``: what is requested: method and URL, or the name of a tool."""
        items = _items_of(body)
        before, added = len(self._items), body
        hashes = list(map(hash, items))
        goes_on = 0 < before < len(items) and hashes[:before] == self._items
        if items:
            self._items = hashes
        if goes_on:
            added = b",".join(map(_without_ids, items[before:]))
        self._last.append((kind, key, digest_of(added)))
        self._goes_on.append(goes_on)

    def clear(self) -> None:
        """Forget the requests: a loop counts from here again."""
        self._last.clear()
        self._goes_on.clear()

    @property
    def is_loop(self) -> bool:
        """Whether the last requests are `REPEATS` equal rounds.

        Rounds of several requests count only if one of them sends results to a model: without them,
        equal requests may poll for something.
        """
        last, goes_on = list(self._last), list(self._goes_on)
        for period in range(1, LONGEST_PERIOD + 1):
            length = period * REPEATS
            rounds = last[-length:]
            if len(rounds) < length or rounds[period:] != rounds[:-period]:
                continue
            if period == 1 or any(goes_on[-period:]):
                return True
        return False


def _items_of(body: bytes) -> list[bytes]:
    """Return the items of a conversation in a request; empty if it has none."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        raw = next((fields[name] for name in _HISTORIES if name in fields), None)
        return [] if raw is None else list(map(bytes, msgspec.json.decode(raw, type=list[msgspec.Raw])))
    except (ValueError, RecursionError):
        return []


def _without_ids(item: bytes) -> bytes:
    try:
        return msgspec.json.encode(_stripped(msgspec.json.decode(item)))
    except (ValueError, RecursionError):
        return item


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _stripped(one) for name, one in fields.items() if name not in _IDS}
    if isinstance(value, list):
        return [_stripped(one) for one in cast("list[Any]", value)]
    return value
