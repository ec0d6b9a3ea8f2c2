"""Renews a golden: the tape of its replay, completed with bytes from the recorded tape, replaces it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from playhead_core.errors import PlayheadError
from playhead_core.facts import Content, ExchangeId, Fact
from playhead_core.tape.folds import fold_exchanges
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_core.tape.protocols import Tape
from playhead_replay.goldens.conditions import unfulfilled
from playhead_replay.goldens.golden_file import read_stored, write_golden
from playhead_replay.goldens.replayed_golden import Expectation, ReplayedGolden
from playhead_replay.run.run import Run
from playhead_replay.runner.configuration import Environment, ReplayConfiguration, Rules
from playhead_replay.runner.replaying import Replayer
from playhead_replay.tape_files.tape_file import SUFFIX, read_unfinished
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def renewed(recorded: Run, now: Run) -> Run:
    """Return the replayed run, completed with the bytes that its tape only refers to."""
    tapes = [answered(recorded.tapes, tape) for tape in now.tapes]
    first = recorded.tape
    others = [below(first, now.tape, tape) for tape in recorded.tapes if tape.instance != first.instance]
    return Run.of_tapes([*tapes, *others], name=recorded.name)


def answered(recorded: Iterable[Tape], now: Tape) -> MemoryTape:
    """Return ``now`` with the bytes of each response, which only the ``recorded`` tapes hold.

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


@dataclass(frozen=True, slots=True)
class Renewed:
    """What became of a golden."""

    path: Path
    updated: bool = False
    problem: str | None = None
    """Why it was left as it is, although the replay differs."""


def renew(path: Path, python: str = "", *, foreign: bool = False) -> Renewed:
    """Replay a golden with the present program; write it again if only outcomes differ.

    ``python``: the interpreter; empty: the recorded one. ``foreign``: see `Environment`.
    """
    try:
        stored = read_stored(path)
        with TemporaryDirectory(prefix="playhead-golden-") as scratch:
            kept = Path(scratch, "now.tape")
            around = Environment(python, stored.folder, foreign=foreign)
            done = Replayer(ReplayConfiguration(around, Rules(force=True), kept)).replay(stored.run)
            now = Run.of_tapes(read_unfinished(kept).tapes, name=stored.run.name)
            broken = Expectation(outcome="changed").broken(done.report)
            if broken:
                return Renewed(path, problem=f"{broken[0].place}: {broken[0].kind} {broken[0].what}")
            wrong = unfulfilled(ReplayedGolden(path, stored.run, now, done), stored.purpose.expect)
            if wrong:
                condition, found = wrong[0]
                return Renewed(path, problem=f"expected: {condition}; now: {found}")
            if not done.report.divergences:
                return Renewed(path)
            packed, purpose = path.suffix != SUFFIX, stored.purpose
            write_golden(path, renewed(stored.run, now), compressed=packed, purpose=purpose)
            return Renewed(path, updated=True)
    except PlayheadError as problem:
        return Renewed(path, problem=problem.what)
