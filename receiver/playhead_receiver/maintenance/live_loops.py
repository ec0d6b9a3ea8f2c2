"""Sees a loop of a running run in its new facts, before the run is derived again.

To derive a run is to read all of it, which is done at intervals that grow with the run. A loop should be
reported within a second, so each new request is read once, as the rule ``loop`` does in the agent's
process. What is seen here only says which run to derive at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from playhead_core.control.loops import LoopFinder
from playhead_core.errors import PlayheadError
from playhead_core.facts import Fact
from playhead_core.tape.folds import end_of, is_inbound
from playhead_receiver.storage import StoredTape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

MOST_RUNS: Final = 500
"""Runs and processes that are remembered, the ones that changed last."""
LONGEST_BODY: Final = 1 << 20
"""Bytes of larger bodies are not read; their digests are compared."""
FIRST_FACTS: Final = 1000
"""Facts that are read at most of a tape that is seen for the first time, the last ones."""

T = TypeVar("T")


class Tapes(Protocol):
    """What is read of a store."""

    def tape(self, instance: bytes) -> StoredTape:
        """The tape of a process instance."""
        ...


class LiveLoops:
    """The requests of running runs, as far as loops need them. For one thread."""

    def __init__(self, store: Tapes) -> None:
        self._store = store
        self._read: OrderedDict[bytes, int] = OrderedDict()
        """Last number that was read, by process instance."""
        self._finders: OrderedDict[bytes, LoopFinder] = OrderedDict()
        """By trace id."""

    def look(self, instances: Iterable[bytes]) -> list[bytes]:
        """Read the new facts of processes; return the trace ids of the runs that are in a loop now.

        Each is returned once: three more rounds must follow until it is returned again.
        """
        touched: set[bytes] = set()
        for instance in instances:
            with suppress(PlayheadError, LookupError, ValueError):  # damaged; `verify` reports it
                touched |= self._take(self._store.tape(instance))
        found = [one for one in touched if one in self._finders and self._finders[one].is_loop]
        for trace_id in found:
            self._finders[trace_id].clear()
        return found

    def _take(self, tape: StoredTape) -> set[bytes]:
        """Read the new facts of a tape; return the trace ids of the requests among them."""
        known = self._read.get(tape.instance)
        last = max(tape.last() - FIRST_FACTS, -1) if known is None else known
        touched: set[bytes] = set()
        try:
            for fact in tape.facts(last):
                last = fact.seq  # not `tape.last()`: facts arrive meanwhile, and none counts twice
                if fact.exchange is None or not fact.trace_id:
                    continue
                if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST and not is_inbound(fact):
                    finder = self._finders.get(fact.trace_id) or LoopFinder()
                    _remember(self._finders, fact.trace_id, finder)
                    key = str(fact.attributes.get(a.PLAYHEAD_ASK_KEY, ""))
                    finder.add(fact.exchange.kind, key, _body(tape, fact), fact.exchange)
                    touched.add(fact.trace_id)
                elif fact.name == e.PLAYHEAD_EXCHANGE_END and fact.trace_id in self._finders:
                    _answered(self._finders[fact.trace_id], fact)
                    touched.add(fact.trace_id)
        finally:
            _remember(self._read, tape.instance, last)
        return touched


def _answered(finder: LoopFinder, fact: Fact) -> None:
    end = end_of(fact)
    if end.how == "error":
        finder.failed(fact.exchange)
    if end.digest:
        finder.answered(fact.exchange, end.digest)


def _body(tape: StoredTape, fact: Fact) -> bytes:
    if fact.body is None:
        return b""
    return fact.body.digest if fact.body.size > LONGEST_BODY else tape.read(fact.body)


def _remember(known: OrderedDict[bytes, T], key: bytes, value: T) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > MOST_RUNS:
        known.popitem(last=False)
