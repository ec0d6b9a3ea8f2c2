"""A tape that is cut short: the part that a fork or a resume plays before it goes live."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from playhead_core.facts import Content, ExchangeId, Fact
from playhead_core.tape.protocols import Tape
from playhead_replay.run.exchanges import RecordedExchange, exchanges_of
from playhead_replay.run.held_tapes import held
from playhead_replay.runner.child_processes import FORK, WORKERS
from playhead_semconv import attributes as a
from playhead_semconv import events as e

OWN_DOING = (
    "CancelledError",
    "GeneratorExit",
    "GreenletExit",
    "KeyboardInterrupt",
    "SystemExit",
    "Timeout",
)
"""Exceptions that end an exchange because its process ends."""

LAST_WORDS = (
    e.PLAYHEAD_PROCESS_EXIT,
    e.PLAYHEAD_PROCESS_HEARTBEAT,
    e.PLAYHEAD_LANE,
    e.PLAYHEAD_SPAN_START,
)


class CutTape:
    """The facts of a tape up to a number, some replaced; content comes from the original tape."""

    def __init__(self, tape: Tape, end: int, replaced: Iterable[Fact] = ()) -> None:
        """``end``: number of the first fact that is left out."""
        self._tape = tape
        self._end = end
        self._replaced = {fact.seq: fact for fact in replaced}
        settled = (*_settled(tape, end), *_told_later(tape, end))
        self._settled = [
            msgspec.structs.replace(fact, seq=end + number) for number, fact in enumerate(settled)
        ]

    @property
    def instance(self) -> bytes:
        """The process instance that the facts belong to."""
        return self._tape.instance

    def facts(self, after: int = -1) -> Iterator[Fact]:
        """Facts with ``seq > after``, ascending."""
        for fact in self._tape.facts(after):
            if fact.seq >= self._end:
                break
            yield self._replaced.get(fact.seq, fact)
        yield from (fact for fact in self._settled if fact.seq > after)

    def read(self, content: Content) -> bytes:
        """The bytes of a content of this tape."""
        return content.inline if _is_whole(content) else self._tape.read(content)  # type: ignore[return-value]


def _settled(tape: Tape, end: int) -> Iterator[Fact]:
    """Late ends of writes whose answer had begun before number ``end``.

    A program that closes an answer after it has read it makes other requests in between.
    """
    asked: set[ExchangeId] = set()
    open: set[ExchangeId] = set()
    ends: dict[ExchangeId, Fact] = {}
    for fact in tape.facts():
        id = fact.exchange
        if id is None:
            continue
        if fact.seq < end:
            if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST:
                if id.kind == "http" and fact.attributes.get(a.PLAYHEAD_ASK_EFFECT) == "write":
                    asked.add(id)
            elif fact.name == e.PLAYHEAD_EXCHANGE_DATA and id in asked:
                open.add(id)
            elif fact.name == e.PLAYHEAD_EXCHANGE_END:
                open.discard(id)
        elif id in open:
            open.discard(id)
            if fact.name == e.PLAYHEAD_EXCHANGE_END and not _is_left(fact):
                ends[id] = fact
    yield from ends.values()


def _told_later(tape: Tape, end: int) -> Iterator[Fact]:
    """Content of large files that were opened before ``end``, if the tape has it only after ``end``."""
    wanted: set[Any] = set()
    for fact in tape.facts():
        number = fact.attributes.get(a.PLAYHEAD_FILE_CONTENT)
        if number is None:
            continue
        if fact.seq < end:
            wanted.add(number)
        elif number in wanted and str(fact.attributes[a.PLAYHEAD_READ_KIND]).startswith("file/content "):
            yield fact


def _is_whole(content: Content) -> bool:
    return content.inline is not None and content.base is None


def end_of_life(tape: Tape) -> int:
    """Number after the last fact that results from the program's own work, and not from its shutdown.

    A process that ends in order abandons its open exchanges; these ends are no answers from the world.
    """
    facts = list(tape.facts())
    end = facts[-1].seq + 1 if facts else 0
    for fact in reversed(facts):
        if fact.name not in LAST_WORDS and not _is_left(fact):
            break
        end = fact.seq
    # Lane declarations may still be needed and heartbeats do no harm, so only ends are cut off.
    ending = [fact.seq for fact in facts if fact.seq >= end and (_is_left(fact) or _is_exit(fact))]
    return min(ending, default=facts[-1].seq + 1 if facts else 0)


def _is_exit(fact: Fact) -> bool:
    return fact.name == e.PLAYHEAD_PROCESS_EXIT


def _is_left(fact: Fact) -> bool:
    if fact.name != e.PLAYHEAD_EXCHANGE_END or fact.delivery is not None:
        return False
    error = str(fact.attributes.get(a.PLAYHEAD_ERROR_QUALNAME, ""))
    return fact.attributes.get(a.PLAYHEAD_END_HOW) == "abandoned" or error in OWN_DOING


def is_fork(exchange: RecordedExchange) -> bool:
    """Whether the exchange is a forked process."""
    return exchange.exchange.id.kind == "process" and asks_for_fork(exchange.request)


def is_worker(exchange: RecordedExchange) -> bool:
    """Whether the exchange is a process that `multiprocessing` spawned."""
    if exchange.exchange.id.kind != "process":
        return False
    return str(call_of(exchange.request)).startswith(WORKERS)


def asks_for_fork(request: bytes) -> bool:
    """Whether the request starts a process as a fork."""
    return call_of(request) == FORK


def call_of(request: bytes) -> object:
    """Name of the call with which a program started a process; None if unknown."""
    try:
        return json.loads(request).get("call")
    except (ValueError, AttributeError, RecursionError):
        return None


def unanswered(tape: Tape) -> list[RecordedExchange]:
    """Outgoing requests on ``tape`` without an answer, in order of the requests."""
    return [
        one
        for one in exchanges_of(held(tape))
        if one.end is None and one.exchange.ask.direction == "out"
    ]
