"""Decides which traces a destination gets: a share by their ids, and all that failed or had errors.

How a run ends is known late. Until then a trace outside of the share is *open*: nothing of it is sent.
The store has its spans, so nothing is kept here: if the run fails, they are read from the store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from playhead_core.errors import RunUnknown
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.retention import of_share

FIRST_LOOK_S = 1.0
LONGEST_REST_S = 30.0
LOOKS_AT_ONCE = 32
MOST_OPEN = 10_000
"""With more open traces the oldest ones are judged early, by their spans so far."""
MOST_KEPT = 10_000


class _Open(msgspec.Struct):
    look_at: float
    rest_s: float = FIRST_LOOK_S


class Sampler:
    """Decides by trace. ``share``: from 0 to 1; ``open``: traces that were open at the last stop."""

    def __init__(self, store: Store, share: float, open: Iterable[bytes] = (), now: float = 0.0) -> None:
        self._store = store
        self._share = share
        self._open = OrderedDict((trace_id, _Open(now)) for trace_id in open)
        self._kept: OrderedDict[bytes, None] = OrderedDict()

    def takes(self, trace_id: bytes, now: float) -> bool:
        """Whether a new span of a trace is sent; if not, the trace becomes open."""
        if self._is_of_share(trace_id) or trace_id in self._kept:
            return True
        self._open[trace_id] = _Open(now + FIRST_LOOK_S)
        self._open.move_to_end(trace_id)
        return False

    def open(self) -> list[bytes]:
        """Traces for which it is not decided yet whether they are sent."""
        return list(self._open)

    def judge(self, now: float) -> tuple[list[bytes], list[bytes]]:
        """Judge due open traces: those that failed, which are sent from now on, and those that did not.

        They stay open until `close`, so that none is lost before it was sent.
        """
        bad: list[bytes] = []
        good: list[bytes] = []
        too_many = len(self._open) - MOST_OPEN
        places = enumerate(self._open.items())
        due = [id for place, (id, one) in places if place < too_many or one.look_at <= now]
        for place, trace_id in enumerate(due[: max(LOOKS_AT_ONCE, too_many)]):
            verdict = self._verdict(trace_id)
            if verdict is None and place >= too_many:
                one = self._open[trace_id]
                one.rest_s = min(2 * one.rest_s, LONGEST_REST_S)
                one.look_at = now + one.rest_s
            else:
                (good if verdict is not False else bad).append(trace_id)
        for trace_id in bad:
            self._kept[trace_id] = None
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return bad, good

    def close(self, traces: Iterable[bytes]) -> None:
        """Remove traces from the open ones."""
        for trace_id in traces:
            self._open.pop(trace_id, None)

    def _is_of_share(self, trace_id: bytes) -> bool:
        return of_share(trace_id, self._share)

    def _verdict(self, trace_id: bytes) -> bool | None:
        """Whether a run succeeded without errors; None while that is not known."""
        try:
            run = self._store.resolve(trace_id.hex())
        except RunUnknown:  # it was deleted
            return True
        if run.errors:
            return False
        return None if run.status == "running" else run.status == "success"
