"""Ambient reads: single values of a clock or a source of entropy.

A recording asks the world and appends the value before the program sees it. A replay answers with the
recorded values of the same lane and kind, in order. A read that the tape does not hold is answered by
the world and marked live in its fact; nothing is raised into the program.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec
from msgspec.msgpack import Ext

from playhead_core.facts import Content, Fact, Fidelity
from playhead_core.process.own_messages import Log
from playhead_core.tape.coalesced import values_of
from playhead_core.tape.protocols import Sink
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.coalescing import Coalescing
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.tape.indexed_tapes import IndexedTape

log = Log(__name__)

T = TypeVar("T")

# Kept here in case a library replaces `time.time_ns` to move the program's clock.
_now_ns: Final = time.time_ns


class Reads:
    """Answers reads and records them. Usable from any thread and in a finalizer."""

    def __init__(
        self,
        sink: Sink,
        declare: Callable[[lanes.Lane], None],
        tape: IndexedTape | None = None,
        *,
        content: bool = True,
    ) -> None:
        """``declare`` puts the name of a lane on the tape. ``tape``: its values answer (replay).

        ``content``: False keeps entropy off the tape.
        """
        self._content = content
        self._sink = sink
        self._held = sink if isinstance(sink, Coalescing) else None
        self._declare = declare
        self._instance = sink.instance
        self._ahead: dict[str, Any] = {}
        """Difference between the clock of the tape and the real one, by kind."""
        self._tape = tape
        self.on_drawn: Callable[[object], None] | None = None
        """Called with values drawn from sources that are on no tape; set at a replay."""
        self.past_tape: Callable[[], None] = lambda: None
        """Called when the tape has no answer."""
        self._recorded: dict[tuple[int, str], array[int]] = {}
        """Numbers of the facts that have not answered yet, the next one last."""
        self._several: dict[tuple[int, str], deque[bytes]] = {}
        """Remaining reads of the last fact that answered, if it holds several."""
        if tape is None:
            return
        for fact in tape.named(e.PLAYHEAD_READ):
            kind = sys.intern(str(fact.attributes.get(a.PLAYHEAD_READ_KIND, "file/")))
            if not kind.startswith("file/"):  # answered by `PlayedFiles`
                self._recorded.setdefault((fact.lane, kind), array("Q")).append(fact.seq)
        for waiting in self._recorded.values():
            waiting.reverse()

    def read(self, kind: str, live: Callable[[], T], *, since: bool = False) -> T:
        """Answer a read. Its value is in the sink on return.

        ``kind``: boundary and source, as ``clock/time.time``. ``live``: reads the real source, returns
        a plain value (number, text, bytes, list of such); its exceptions go to the program. ``since``:
        the value counts from an arbitrary zero; behind the end of the tape it continues from the last
        recorded value.
        """
        lane = lanes.current()
        if lane is lanes.UNRECORDED or lane is lanes.GC:
            return live()
        if not self._content and kind.startswith("entropy/"):
            return live()
        if self._tape is None:
            value = live()
            self._recorded_now(lane, kind, value)
            return value
        data = self._next(self._tape, lane, kind)
        if data is None:
            return self._unrecorded(lane, kind, live, since)
        value: Any = decode_value(data)
        if since:
            self._ahead[kind] = value - live()
        self._keep(lane, kind, value, Fidelity.EXACT)
        return value

    def drew(self, value: T) -> T:
        """The program has drawn ``value`` from a generator whose state is on the tape."""
        return value

    def forget(self) -> None:
        """Let the world answer from now on."""
        self._recorded, self._several = {}, {}

    def ahead(self, kind: str) -> Any:
        """Difference between the clock of the tape and the real one."""
        return self._ahead.get(kind, 0)

    def _unrecorded(self, lane: lanes.Lane, kind: str, live: Callable[[], Any], since: bool) -> Any:
        """Answer a read that is not on the tape."""
        self.past_tape()
        value = live()
        if since:
            value += self._ahead.get(kind, 0)
        self._keep(lane, kind, value, Fidelity.LIVE)
        return value

    def _next(self, tape: IndexedTape, lane: lanes.Lane, kind: str) -> bytes | None:
        """The next recorded value; None if there is none."""
        # The child of a fork has its own tape; this one is the parent's.
        if self._sink.instance != self._instance:
            return None
        key = lane.hash, kind
        try:
            several = self._several.get(key)
            if several:
                return several.popleft()
            waiting = self._recorded.get(key)
            fact = tape.fact(waiting.pop()) if waiting else None
        except IndexError:  # another thread of the same lane took the last one
            return None
        if fact is None:
            return None
        first, *others = values_of(fact, b"" if fact.body is None else tape.read(fact.body)) or [b""]
        if others:
            self._several[key] = deque(others)
        return first

    def _recorded_now(self, lane: lanes.Lane, kind: str, value: Any) -> None:
        """Record a read (recording only)."""
        held = self._held
        if held is None or not kind.startswith("clock/"):
            self._keep(lane, kind, value, None)
            return
        try:
            if lane.declared_on != held.instance:
                self._declare(lane)
            held.read(lane.hash, kind, encode_value(value))
        except Exception:
            log.debug("playhead could not record a read of %s", kind, exc_info=True)

    def _keep(self, lane: lanes.Lane, kind: str, value: Any, fidelity: Fidelity | None) -> None:
        attributes: dict[str, Any] = {a.PLAYHEAD_READ_KIND: kind}
        if fidelity is not None:
            attributes[a.PLAYHEAD_FIDELITY] = fidelity
        try:
            if lane.declared_on != self._sink.instance:
                self._declare(lane)
            data = encode_value(value)
            body = Content(b"", len(data), data)
            now_ns = _now_ns()
            self._sink.append(Fact(now_ns, lane.hash, e.PLAYHEAD_READ, attributes=attributes, body=body))
        except Exception:
            log.debug("playhead could not record a read of %s", kind, exc_info=True)


NOT_UNICODE: Final = 1
"""Code of the extension: text with lone surrogates, as UTF-8 in which they pass for characters."""

_encode: Final = msgspec.msgpack.Encoder().encode


def encode_value(value: Any) -> bytes:
    """Return a plain value (number, text, bytes, list or dict of such) as MessagePack."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_storable(value))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return Ext(NOT_UNICODE, value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, list | tuple):
        return [_storable(one) for one in cast("list[Any]", value)]
    elif isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {_storable(name): _storable(one) for name, one in fields.items()}
    return value


def _extension(code: int, data: memoryview) -> Any:
    if code != NOT_UNICODE:
        raise ValueError(f"unknown extension {code} of a recorded value")
    return bytes(data).decode("utf-8", "surrogatepass")


decode_value: Final = msgspec.msgpack.Decoder(ext_hook=_extension).decode
"""The inverse of `encode_value`. `msgspec.MsgspecError` or ValueError for anything else."""
