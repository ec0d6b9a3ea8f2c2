"""Requests that differ from the recorded ones in volatile values only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from playhead_core.normalize import Bijection, ComparedRequest, Pair, Unlike, compare, text_of
from playhead_core.normalize.heads import Heads
from playhead_core.normalize.instants import Stretch
from playhead_core.normalize.pairs import MOST_PAIRS, short
from playhead_instrumentation.patching import at_fork
from playhead_instrumentation.replayer.volatile.evidence import Handed
from playhead_instrumentation.replayer.volatile.handed_out import HandedOut
from playhead_instrumentation.replayer.volatile.translation import Stream, Translation, translated_parts


@dataclass(frozen=True, slots=True)
class Proposal:
    """The pairs under which a request equals the recorded one, if they are accepted."""

    pairs: tuple[Pair, ...]
    """Each once. Empty where the requests are equal."""

    @property
    def text(self) -> str:
        """The pairs for the replay's request fact; `playhead_core.normalize.pairs_of` reads them."""
        return text_of(self.pairs)


class Volatile:
    """The mapping of recorded values to values of now in one process. Safe from any thread.

    A player compares a request with one candidate after the other, which changes nothing, and accepts
    the proposal of the one that answers. From then on its pairs hold: a later request that contradicts
    them is different. The played answer is `translated`.
    """

    def __init__(
        self,
        handed_out: HandedOut,
        recorded_ns: Stretch | None = None,
        most_pairs: int = MOST_PAIRS,
    ) -> None:
        """``recorded_ns``: first and last time on the tape, in nanoseconds since the epoch. A recorded
        instant outside it was not read in the recording but is the program's own. None: not known; any
        instant counts. ``most_pairs``: pairs that are kept, those used last. The value of a dropped pair
        is known only as long as ``handed_out`` knows it.
        """
        self._handed_out = handed_out
        self._recorded_ns = recorded_ns
        self._lock = threading.RLock()
        self._bijection = Bijection(most_pairs)
        self._known: Heads[str, Pair] = Heads()
        """Pairs by the value of now."""
        self._lasted: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Forms of accepted durations, by recorded value and value of now. A conversation repeats them
        after their reads are dropped."""
        self._most_pairs = most_pairs
        self._translation = Translation()
        at_fork.in_child(self._forked)

    def _forked(self) -> None:
        # The thread that held the lock does not exist in this process.
        self._lock._at_fork_reinit()  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self._bijection)

    def pairs(self) -> list[Pair]:
        """The pairs that hold, the last used at the end. Instants and durations are not included."""
        with self._lock:
            return self._bijection.pairs()

    def compare(self, recorded: ComparedRequest, now: ComparedRequest) -> Proposal | Unlike:
        """Compare two requests: a proposal where only volatile values differ, else the first difference.

        Changes nothing. Make both with `ComparedRequest.of` from the bodies as sent (uncompressed;
        multipart without its boundary); make one that is compared often only once. A value is volatile
        where the value of now was handed out, the recorded one has the same form, and no pair that
        holds contradicts.
        """
        self._handed_out.settle()
        with self._lock:
            handed = Handed(self._handed_out, self._known, self._lasted, self._recorded_ns)
            found = compare(recorded, now, handed)
            return found if isinstance(found, Unlike) else self._checked(found)

    def accept(self, proposal: Proposal) -> Unlike | None:
        """Make the pairs of a proposal hold from now on.

        Where another thread has accepted a contradicting pair in the meantime, nothing is changed and
        the contradiction is returned: compare the request again.
        """
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
        """A recorded, uncompressed answer with the values of now where they have the same length."""
        with self._lock:
            return self._translation.of(data) if self._translation else data

    def translated_parts(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The translated parts of a recorded answer; each keeps its length.

        A part that ends inside a value is given once the rest of the value is known, so parts are read
        ahead where needed; mostly they are not.
        """
        return translated_parts(self.stream(), parts)

    def stream(self) -> Stream:
        """A translator for an answer whose later parts cannot be read ahead.

        It uses pairs that are accepted in the meantime too. Use one per answer, from one thread at a
        time.
        """
        return Stream(self._translation, self._lock)

    def _checked(self, pairs: tuple[Pair, ...]) -> Proposal | Unlike:
        broken = self._bijection.broken(pairs)
        if broken is None:
            return Proposal(pairs)
        pair, why = broken
        return Unlike("volatile values", short(pair.recorded), short(pair.now), why)
