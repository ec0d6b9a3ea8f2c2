"""A tape cut short: what a fork or a resume plays before it goes on for real."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from playhead_replay.launch.child_processes import FORK, WORKERS
from playhead_replay.run.exchanges import RecordedExchange, exchanges_of
from playhead_replay.run.run import held
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import Content, ExchangeId, Fact
from playhead_semconv.tape.protocols import Tape

OWN_DOING = ("CancelledError", "GeneratorExit", "KeyboardInterrupt", "SystemExit")
"""What ends an exchange when its process does."""

LAST_WORDS = (
    e.PLAYHEAD_PROCESS_EXIT,
    e.PLAYHEAD_PROCESS_HEARTBEAT,
    e.PLAYHEAD_LANE,
    e.PLAYHEAD_SPAN_START,
)


class CutTape:
    """The facts of a tape up to a number, some of them replaced; its content is that of the tape."""

    def __init__(self, tape: Tape, end: int, replaced: Iterable[Fact] = ()) -> None:
        """``end``: number of the first fact that is not on it."""
        self._tape = tape
        self._end = end
        self._replaced = {fact.seq: fact for fact in replaced}
        settled = (*_settled(tape, end), *_told_later(tape, end))
        self._settled = [
            msgspec.structs.replace(fact, seq=end + number) for number, fact in enumerate(settled)
        ]

    @property
    def instance(self) -> bytes:
        """Whose facts these are."""
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
    """The ends of writes that had been answered before number ``end``, but for that.

    A program that closes an answer when it has read it asks for other things meanwhile.
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
    """What large files held that were opened before number ``end``, where it is told behind that."""
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
    """Number behind the last fact that is the program's doing, and not that of its end.

    What a process that ends in order says of what it leaves undone is no answer of the world.
    """
    facts = list(tape.facts())
    end = facts[-1].seq + 1 if facts else 0
    for fact in reversed(facts):
        if fact.name not in LAST_WORDS and not _is_left(fact):
            break
        end = fact.seq
    # A lane that was declared may be needed, and a heartbeat does not hurt: only what ends goes.
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
    """Whether it is a process that was forked."""
    return exchange.exchange.id.kind == "process" and asks_for_fork(exchange.request)


def is_worker(exchange: RecordedExchange) -> bool:
    """Whether it is a process that `multiprocessing` started anew."""
    if exchange.exchange.id.kind != "process":
        return False
    return str(call_of(exchange.request)).startswith(WORKERS)


def asks_for_fork(request: bytes) -> bool:
    """Whether that is how a process is asked for that is a fork."""
    return call_of(request) == FORK


def call_of(request: bytes) -> object:
    """What a program called to start a process; None where that is not known."""
    try:
        return json.loads(request).get("call")
    except (ValueError, AttributeError, RecursionError):
        return None


def unanswered(tape: Tape) -> list[RecordedExchange]:
    """What was asked on ``tape`` and not answered, in order of the requests."""
    return [
        one
        for one in exchanges_of(held(tape))
        if one.end is None and one.exchange.ask.direction == "out"
    ]
