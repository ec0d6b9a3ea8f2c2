"""Checks the integrity of a tape file: compares its facts with their hash chains."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from playhead_core.facts import Fact
from playhead_core.integrity import ChainMapping, LinkStatement, fact_digest
from playhead_core.integrity.chain_check import ChainCheck, ChainDifference
from playhead_core.integrity.number_ranges import Ranges, extend, merged, outside
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.tape_files.tape_file import TapeFile


@dataclass(frozen=True, slots=True)
class Chained:
    """The integrity check of one process in a file."""

    instance: bytes
    """The process instance in the file."""
    origin: bytes
    """The process instance to which the chain belongs; empty without a chain."""
    facts: int
    links: int
    head: bytes
    """The last link."""
    part: bool
    """Whether the file has only some of the facts of the process."""
    before: int
    """Number of facts from before the chain began; nothing proves these."""
    rewritten: int
    """Number of facts that were rewritten for the file."""
    said: list[LinkStatement]
    """Declared changes to facts of the process since they arrived."""
    differences: list[ChainDifference]

    @property
    def is_chained(self) -> bool:
        """Whether a chain covers some of the facts."""
        return bool(self.links) and self.before < max(1, self.facts)


def inspect(found: TapeFile) -> list[Chained]:
    """Check every fact of a file against the chain of its process."""
    accounts = {instance: ChainCheck.of(instance, links) for instance, links in found.chains.items()}
    checked: list[Chained] = []
    for tape in found.tapes:
        part = found.parts.get(tape.instance)
        origin = tape.instance if part is None else part.origin
        account = accounts.get(origin)
        if account is None:
            checked.append(Chained(tape.instance, b"", len(tape), 0, b"", False, 0, 0, [], []))
        elif part is None or part.origin == tape.instance:
            checked.append(_whole(tape, account, part))
        else:
            checked.append(_part(tape, account, part))
    checked += _left(found, accounts)
    return checked


def origin_of(numbers: Sequence[tuple[int, int, int]], seq: int) -> int | None:
    """The chain's number of a fact in a partial tape, given its number in the file."""
    place = bisect_right(numbers, (seq, 1 << 63, 0)) - 1
    if place < 0:
        return None
    first, origin, count = numbers[place]
    return origin + seq - first if seq < first + count else None


def _whole(tape: IndexedTape, account: ChainCheck, part: ChainMapping | None) -> Chained:
    others = {} if part is None else part.others
    before = 0
    for fact in tape.facts():
        digest = fact_digest(fact)
        if others.get(fact.seq) == digest:
            account.take(fact, account.expected(fact.seq))
        else:
            account.take(fact, digest)
        before += account.is_before(fact.seq)
    return _chained(tape, account, before, len(others), list(account.differences()))


def _part(tape: IndexedTape, account: ChainCheck, part: ChainMapping) -> Chained:
    """Check a partial tape: only the facts that the part claims must be there."""
    differ: Ranges = []
    here: Ranges = []
    before = 0
    for fact in tape.facts():
        extend(here, fact.seq, fact.seq)
        origin = origin_of(part.numbers, fact.seq)
        if origin is not None and account.is_before(origin):
            before += 1
        elif not _is_as_said(fact, account, part, origin):
            extend(differ, fact.seq, fact.seq)
    differences = [ChainDifference(-1, -1, problem) for problem in account.problems]
    for first, last in differ:
        differences.append(
            ChainDifference(first, last, "was replaced" if first == last else "were replaced")
        )
    has = merged((first, first + count - 1) for first, _, count in part.numbers)
    for first, last in has:
        for begin, end in outside(first, last, here):
            differences.append(
                ChainDifference(begin, end, "is missing" if begin == end else "are missing")
            )
    return replace(_chained(tape, account, before, len(part.others), differences), part=True)


def _is_as_said(fact: Fact, account: ChainCheck, part: ChainMapping, origin: int | None) -> bool:
    if fact.seq in part.others:
        return fact_digest(fact) == part.others[fact.seq]
    if origin is None:
        return False
    as_stored = msgspec.structs.replace(fact, instance=part.origin, seq=origin)
    return fact_digest(as_stored) == account.expected(origin)


def _disorder(tape: IndexedTape) -> list[ChainDifference]:
    """Facts must be in the order of their numbers."""
    return [ChainDifference(seq, seq, "is out of order or duplicated") for seq in tape.disorder]


def _chained(
    tape: IndexedTape,
    account: ChainCheck,
    before: int,
    rewritten: int,
    differences: list[ChainDifference],
) -> Chained:
    return Chained(
        tape.instance,
        account.instance,
        len(tape),
        account.links,
        account.head,
        False,
        before,
        rewritten,
        account.said,
        [*differences, *_disorder(tape)],
    )


def _left(found: TapeFile, accounts: dict[bytes, ChainCheck]) -> list[Chained]:
    """Chains of processes that have no fact in the file, unless the file declares this."""
    known = {tape.instance for tape in found.tapes} | {part.origin for part in found.parts.values()}
    left: list[Chained] = []
    for instance, account in accounts.items():
        if instance not in known:
            tape = IndexedTape([], instance)
            left.append(_chained(tape, account, 0, 0, list(account.differences())))
    return left
