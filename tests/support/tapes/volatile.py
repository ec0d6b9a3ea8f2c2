"""A recorded run and its replay, with two clocks and two sources of entropy."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import Any

from playhead_core.normalize import ComparedRequest, Pair, Unlike
from playhead_instrumentation.replayer.volatile import HandedOut, Proposal, Volatile

START_NS = 1_795_341_600_000_000_000
"""2026-11-22 10:00:00 UTC."""

RECORDED_NS = (START_NS, START_NS + 30_000_000_000)


def instant(after_s: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(START_NS // 10**9, dt.UTC) + dt.timedelta(seconds=after_s)


class Replay:
    """What a replay handed out, and its judgement on two requests."""

    def __init__(self, recorded_ns: tuple[int, int] | None = RECORDED_NS) -> None:
        self.handed_out = HandedOut()
        self.volatile = Volatile(self.handed_out, recorded_ns)

    def draws(self, size: int, seed: int = 0) -> bytes:
        data = random.Random(seed * 1000 + size).randbytes(size)
        self.handed_out.note_bytes(data)
        return data

    def reads(self, *after_s: float) -> None:
        for one in after_s:
            self.handed_out.note_time(START_NS + round(one * 1e9))

    def compare(self, recorded: Any, now: Any) -> Proposal | Unlike:
        return self.volatile.compare(request(recorded), request(now))

    def compare_requests(self, recorded: ComparedRequest, now: ComparedRequest) -> Proposal:
        found = self.volatile.compare(recorded, now)
        assert isinstance(found, Proposal), str(found)
        return found

    def pairs(self, recorded: Any, now: Any) -> list[Pair]:
        found = self.compare(recorded, now)
        assert isinstance(found, Proposal), str(found)
        return list(found.pairs)

    def accepts(self, recorded: Any, now: Any) -> list[Pair]:
        found = self.compare(recorded, now)
        assert isinstance(found, Proposal), str(found)
        assert self.volatile.accept(found) is None
        return list(found.pairs)

    def refuses(self, recorded: Any, now: Any) -> Unlike:
        found = self.compare(recorded, now)
        assert isinstance(found, Unlike), found
        return found


def request(value: Any) -> ComparedRequest:
    return ComparedRequest.of(value if isinstance(value, bytes) else json.dumps(value).encode())
