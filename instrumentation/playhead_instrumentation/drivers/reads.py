"""Ambient reads: one value at a time, of a clock or a source of entropy.

A recording asks the world and puts the value on the tape before the program sees it. A replay answers
with the recorded values of the same lane and kind, in their order. What the tape does not hold is
answered by the world, and the fact says so: nothing is raised into the program.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from playhead_instrumentation import lanes
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import Content, Fact, Fidelity
from playhead_semconv.seams import Sink, Tape

log = logging.getLogger(__name__)

T = TypeVar("T")

# Also where the program's own clock is moved by a library that replaces `time.time_ns`.
_now_ns: Final = time.time_ns
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode


class Reads:
    """Answers reads and puts them on the tape. Safe from any thread and in a finalizer."""

    def __init__(
        self, sink: Sink, declare: Callable[[lanes.Lane], None], tape: Tape | None = None
    ) -> None:
        """``declare`` puts a lane's name on the tape. ``tape``: whose values answer."""
        self._sink = sink
        self._declare = declare
        self._instance = sink.instance
        self._ahead: dict[str, Any] = {}
        """How far a clock of the tape is ahead of the real one, by kind."""
        self._recorded: dict[tuple[int, str], deque[bytes]] | None = None
        if tape is not None:
            self._recorded = {}
            for fact in tape.facts():
                if fact.name == e.PLAYHEAD_READ and a.PLAYHEAD_READ_KIND in fact.attributes:
                    key = fact.lane, str(fact.attributes[a.PLAYHEAD_READ_KIND])
                    if key[1].startswith("file/"):  # `PlayedFiles` answers them
                        continue
                    value = b"" if fact.body is None else tape.read(fact.body)
                    self._recorded.setdefault(key, deque()).append(value)

    def read(self, kind: str, live: Callable[[], T], *, since: bool = False) -> T:
        """The value of a read, which is in the sink on return.

        ``kind``: boundary and what is read, ``clock/time.time``. ``live``: reads it for real; gives a
        plain value (number, text, bytes, list of such). What it raises is the program's. ``since``: a
        number that counts from an arbitrary zero; where the tape ends, it goes on from its last value.
        """
        lane = lanes.current()
        if lane is lanes.SHADOW or lane is lanes.GC:
            return live()
        if self._recorded is None:
            value = live()
            self._keep(lane, kind, _encode(value), None)
            return value
        # The child of a fork has a tape of its own, which is not this one.
        recorded = (
            self._recorded.get((lane.hash, kind)) if self._sink.instance == self._instance else None
        )
        try:
            data = recorded.popleft() if recorded else None
        except IndexError:  # another thread of the same lane took the last one
            data = None
        if data is None:
            value: Any = live()
            if since:
                value += self._ahead.get(kind, 0)
            self._keep(lane, kind, _encode(value), Fidelity.LIVE)
            return value
        value = _decode(data)
        if since:
            self._ahead[kind] = value - live()
        self._keep(lane, kind, data, Fidelity.EXACT)
        return value

    def forget(self) -> None:
        """From now on the world answers."""
        if self._recorded is not None:
            self._recorded = {}

    def ahead(self, kind: str) -> Any:
        """How far a clock of the tape is ahead of the real one."""
        return self._ahead.get(kind, 0)

    def _keep(self, lane: lanes.Lane, kind: str, data: bytes, fidelity: Fidelity | None) -> None:
        attributes: dict[str, Any] = {a.PLAYHEAD_READ_KIND: kind}
        if fidelity is not None:
            attributes[a.PLAYHEAD_FIDELITY] = fidelity
        try:
            if lane.declared_on != self._sink.instance:
                self._declare(lane)
            body = Content(b"", len(data), data)
            now_ns = _now_ns()
            self._sink.append(Fact(now_ns, lane.hash, e.PLAYHEAD_READ, attributes=attributes, body=body))
        except Exception:
            log.debug("playhead could not record a read of %s", kind, exc_info=True)
