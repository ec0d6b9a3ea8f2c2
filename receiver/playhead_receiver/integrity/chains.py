"""The chains of a run's processes, in the form in which they are written to its file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from playhead_core.facts import Fact
from playhead_core.integrity import (
    ChainMapping,
    Link,
    LinkStatement,
    Signature,
    What,
    digests_of,
    fact_digest,
    next_link,
    statement_of,
)
from playhead_core.integrity.chain import pieces
from playhead_core.integrity.chain_check import ChainCheck
from playhead_core.integrity.number_ranges import merged, outside
from playhead_core.tape.protocols import Tape
from playhead_core.tape.slices import SlicedTape
from playhead_receiver.storage.api.store import Store
from playhead_replay.tape_files.integrity import origin_of


@dataclass
class _Process:
    """One process of the run while it is written."""

    instance: bytes
    """The process instance in the file."""
    origin: bytes
    numbers: list[tuple[int, int, int]] | None
    """For a part: (number in the file, number in the chain, count) per range."""
    account: ChainCheck
    others: dict[int, bytes] = field(default_factory=dict[int, bytes])


class StoreChains:
    """Provides the chains of a stored run while its file is written: a `Keeper` of `tape_file`."""

    def __init__(self, store: Store, tapes: Sequence[Tape], named: Sequence[Tape]) -> None:
        """``tapes`` as stored, ``named`` as written, in the same order."""
        self._store = store
        self._tapes = list(zip(tapes, named, strict=True))

    @cached_property
    def links(self) -> dict[bytes, list[Link]]:
        """The chain of each process that has one, by its instance in the store."""
        found = {tape.instance: self._store.chain(tape.instance) for tape, _ in self._tapes}
        return {instance: links for instance, links in found.items() if links}

    @cached_property
    def _processes(self) -> dict[bytes, _Process]:
        return {
            written.instance: _Process(
                written.instance,
                tape.instance,
                _numbers(tape) if isinstance(tape, SlicedTape) else None,
                ChainCheck.of(tape.instance, self.links[tape.instance]),
            )
            for tape, written in self._tapes
            if tape.instance in self.links
        }

    def take(self, fact: Fact) -> None:
        """Note the digest of a fact that is not written as it was stored."""
        process = self._processes.get(fact.instance)
        if process is None:
            return
        numbers, account = process.numbers, process.account
        origin = fact.seq if numbers is None else origin_of(numbers, fact.seq)
        if origin is not None:
            expected = account.expected(origin)
            as_stored = msgspec.structs.replace(fact, instance=process.origin, seq=origin)
            if expected is None or fact_digest(as_stored) == expected:
                return
            stored = next(self._store.tape(process.origin).facts(origin - 1), None)
            if stored is None or stored.seq != origin or fact_digest(stored) != expected:
                return  # the stored fact was altered: a reader of the file must be able to detect this
        process.others[fact.seq] = fact_digest(fact)

    def rewritten(self, instance: bytes) -> set[int]:
        """Numbers of the facts of a process that were not written as they were stored."""
        process = self._processes.get(instance)
        return set() if process is None else set(process.others)

    def records(self) -> Iterator[Link | ChainMapping]:
        """The chains, and how the written facts relate to them."""
        for process in self._processes.values():
            links = self.links[process.origin]
            if process.numbers is None:
                yield from links
            else:
                there = merged((first, first + count - 1) for _, first, count in process.numbers)
                yield from (_without_digests(link, there) for link in links)
            if process.numbers is not None or process.others:
                numbers = process.numbers or []
                yield ChainMapping(process.instance, process.origin, numbers, process.others)

    def sign(self, facts: int, spans: int, digest: bytes) -> Signature | None:
        """None: a `Signing` around this keeper signs."""
        return None


class FileChains:
    """Carries over the chains of a file when another file is made from it; also those of a redaction."""

    def __init__(
        self, links: Mapping[bytes, Sequence[Link]], parts: Iterable[ChainMapping] = ()
    ) -> None:
        self.links = links
        self._parts = list(parts)

    def take(self, fact: Fact) -> None:
        """Ignored: errors in the original file remain detectable."""

    def rewritten(self, instance: bytes) -> set[int]:
        """Empty: the facts are those of the file."""
        return set()

    def records(self) -> Iterator[Link | ChainMapping]:
        """The records of the original file."""
        for links in self.links.values():
            yield from links
        yield from self._parts

    def sign(self, facts: int, spans: int, digest: bytes) -> Signature | None:
        """None: a `Signing` around this keeper signs."""
        return None


def redacted_chain(
    chains: StoreChains | FileChains, facts: Sequence[Fact], redacted: Sequence[Fact], by: str
) -> list[Link]:
    """The chain of a process after a redaction, with links at its end that declare the replaced facts.

    ``facts``: the facts before the redaction, as they are written to a file. Empty if there is no chain.
    """
    instance = facts[0].instance
    links = chains.links.get(instance)
    if not links:
        return []
    for fact in facts:
        chains.take(fact)
    rewritten = chains.rewritten(instance)
    changed = [
        new for old, new in zip(facts, redacted, strict=True) if new != old or old.seq in rewritten
    ]
    ranges = merged((fact.seq, fact.seq) for fact in changed)
    found, now_ns = list(links), time.time_ns()
    for some, digests in pieces(What.REDACTED, ranges, digests_of(changed)):
        before = found[-1].link
        found.append(
            next_link(before, instance, LinkStatement(What.REDACTED, some, now_ns, by), digests)
        )
    return found


def _numbers(tape: SlicedTape) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for fact, origin in zip(tape.facts(), tape.origins, strict=True):
        if origin < 0:
            continue
        if found:
            first, its, count = found[-1]
            if (first + count, its + count) == (fact.seq, origin):
                found[-1] = first, its, count + 1
                continue
        found.append((fact.seq, origin, 1))
    return found


def _without_digests(link: Link, there: list[tuple[int, int]]) -> Link:
    """A link without its digests, if the file has none of its facts; otherwise the link itself."""
    said = statement_of(link)
    if said.what not in (What.CAME, What.EMPTIED, What.REDACTED):
        return link
    for first, last in said.ranges:
        if list(outside(first, last, there)) != [(first, last)]:
            return link
    return msgspec.structs.replace(link, digests=b"")
