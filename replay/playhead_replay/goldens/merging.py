"""Completes the tape of a replay with bytes from the tape that answered it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from playhead_core.facts import Content, ExchangeId, Fact
from playhead_core.tape.folds import fold_exchanges
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_core.tape.protocols import Tape
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def renewed(recorded: Run, now: Run) -> Run:
    """The replayed run, with the bytes that its tape refers to put in."""
    tapes = [answered(recorded.tapes, tape) for tape in now.tapes]
    first = recorded.tape
    others = [below(first, now.tape, tape) for tape in recorded.tapes if tape.instance != first.instance]
    return Run.of_tapes([*tapes, *others], name=recorded.name)


def answered(recorded: Iterable[Tape], now: Tape) -> MemoryTape:
    """``now`` with the bytes of each answer, which only the ``recorded`` tapes hold.

    `TapeError` if no tape holds them.
    """
    exchanges = {
        (tape.instance.hex(), exchange.first_seq): (tape, exchange)
        for tape in recorded
        for exchange in fold_exchanges(tape.facts()).values()
    }
    origins = {
        fact.exchange: exchanges.get(
            (
                str(fact.attributes.get(a.PLAYHEAD_ORIGIN_INSTANCE, "")),
                int(fact.attributes.get(a.PLAYHEAD_ORIGIN_SEQ, -1)),
            )
        )
        for fact in now.facts()
        if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST and fact.exchange is not None
    }
    parts: dict[ExchangeId, int] = {}
    facts: list[Fact] = []
    for fact in now.facts():
        body, id = fact.body, fact.exchange
        origin = origins.get(id) if id is not None else None
        if body is not None and id is not None and origin is not None:
            tape, exchange = origin
            if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST and _elsewhere(body):
                fact = _with(fact, body.digest, tape.read(exchange.ask.body))
            elif (
                fact.name == e.PLAYHEAD_EXCHANGE_DATA
                and fact.attributes.get(a.PLAYHEAD_EXCHANGE_DIRECTION) != "out"
            ):
                number = parts.get(id, 0)
                parts[id] = number + 1
                if _elsewhere(body):
                    fact = _with(fact, body.digest, tape.read(exchange.parts[number].data))
        facts.append(fact)
    return MemoryTape(facts, now.instance)


def below(recorded: Tape, now: Tape, child: Tape) -> MemoryTape:
    """The tape of a child process, with ``now`` instead of ``recorded`` as its parent."""
    named = a.PLAYHEAD_PROCESS_PARENT_INSTANCE
    facts = [
        msgspec.structs.replace(fact, attributes={**fact.attributes, named: now.instance.hex()})
        if fact.attributes.get(named) == recorded.instance.hex()
        else fact
        for fact in child.facts()
    ]
    return MemoryTape(facts, child.instance)


def _elsewhere(body: Content) -> bool:
    return body.inline is None and body.base is None and body.size > 0


def _with(fact: Fact, digest: bytes, data: bytes) -> Fact:
    return msgspec.structs.replace(fact, body=Content(digest, len(data), data))
