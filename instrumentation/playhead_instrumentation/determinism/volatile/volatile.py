"""Requests that differ from the recorded ones in volatile values only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from playhead_instrumentation.determinism.volatile.evidence import Handed
from playhead_instrumentation.determinism.volatile.handed_out import HandedOut
from playhead_instrumentation.determinism.volatile.translation import (
    Stream,
    Translation,
    translated_parts,
)
from playhead_instrumentation.runtime import at_fork
from playhead_semconv.volatile import Bijection, Pair, Request, Unlike, compare, text_of
from playhead_semconv.volatile.heads import Heads
from playhead_semconv.volatile.instants import Stretch
from playhead_semconv.volatile.pairs import MOST_PAIRS, short


@dataclass(frozen=True, slots=True)
class Proposal:
    """A request is the recorded one, if these pairs are accepted."""

    pairs: tuple[Pair, ...]
    """Each once. Empty where the requests are equal."""

    @property
    def text(self) -> str:
        """For the request fact of the replay; `playhead_semconv.volatile.pairs_of` reads it."""
        return text_of(self.pairs)


class Volatile:
    """Which recorded value stands for which one now, over a process. Safe from any thread.

    A player compares a request with one candidate after the other, which changes nothing, and accepts
    the proposal of the one that answers. From then on its pairs hold: a later request that is against
    them is another one. The answer that is played is `translated`.
    """

    def __init__(
        self,
        handed_out: HandedOut,
        recorded_ns: Stretch | None = None,
        most_pairs: int = MOST_PAIRS,
    ) -> None:
        """``recorded_ns``: first and last time on the tape, since the epoch: a recorded instant that
        does not lie there was no instant of the recording, but the program's own word. None: not
        known, then any instant counts. ``most_pairs``: those used last are kept; a value of one that
        was forgotten is known only as long as ``handed_out`` knows it.
        """
        self._handed_out = handed_out
        self._recorded_ns = recorded_ns
        self._lock = threading.RLock()
        self._bijection = Bijection(most_pairs)
        self._known: Heads[str, Pair] = Heads()
        """By the value of now."""
        self._lasted: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Durations that were accepted: they go on in a conversation when their reads are forgotten."""
        self._most_pairs = most_pairs
        self._translation = Translation()
        at_fork.in_child(self._forked)

    def _forked(self) -> None:
        # The thread that held the lock is not in this process.
        self._lock._at_fork_reinit()  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self._bijection)

    def pairs(self) -> list[Pair]:
        """The pairs that hold, those used last at the end. Instants and durations are not among them."""
        with self._lock:
            return self._bijection.pairs()

    def compare(self, recorded: Request, now: Request) -> Proposal | Unlike:
        """Whether ``now`` is ``recorded`` but for volatile values; else where it is not. Changes
        nothing.

        Both are made by `Request.of` from bodies as they were sent (uncompressed; multipart without its
        boundary); one that is compared often is made once. A value is volatile where the one of now was
        handed out, the recorded one has the same form, and no pair that holds says otherwise.
        """
        self._handed_out.settle()
        with self._lock:
            handed = Handed(self._handed_out, self._known, self._lasted, self._recorded_ns)
            found = compare(recorded, now, handed)
            return found if isinstance(found, Unlike) else self._checked(found)

    def accept(self, proposal: Proposal) -> Unlike | None:
        """The pairs of a proposal hold from now on. Where another thread accepted one that is against
        them since, nothing is changed, and that is what comes back: the request is to be compared
        anew."""
        with self._lock:
            checked = self._checked(proposal.pairs)
            if isinstance(checked, Unlike):
                return checked
            new, dropped = self._bijection.add(proposal.pairs)
            for pair in dropped:
                self._known.drop(pair.now)
                self._translation.drop(pair)
            for pair in new:
                self._known.put(pair.now, pair)
                self._translation.put(pair)
            for recorded, now, name in proposal.pairs:
                if name.startswith("duration:"):
                    self._lasted[recorded, now] = name
                    self._lasted.move_to_end((recorded, now))
            while len(self._lasted) > self._most_pairs:
                self._lasted.popitem(last=False)
        return None

    def translated(self, data: bytes) -> bytes:
        """A recorded answer, uncompressed, with the values of now where they are equally long."""
        with self._lock:
            return self._translation.of(data) if self._translation else data

    def translated_parts(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """A recorded answer in parts, each of which stays as long as it is; a part is given as soon as
        it is known how a value goes on that it ends in, so parts are read ahead, most often not at
        all."""
        return translated_parts(self.stream(), parts)

    def stream(self) -> Stream:
        """Translates an answer whose later parts cannot be read ahead. Values that are accepted
        meanwhile count. One for each answer; each is used by one thread at a time."""
        return Stream(self._translation, self._lock)

    def _checked(self, pairs: tuple[Pair, ...]) -> Proposal | Unlike:
        broken = self._bijection.broken(pairs)
        if broken is None:
            return Proposal(pairs)
        pair, why = broken
        return Unlike("volatile values", short(pair.recorded), short(pair.now), why)
