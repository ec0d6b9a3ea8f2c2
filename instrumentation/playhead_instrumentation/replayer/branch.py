"""The source of a fork or a resume: a tape answers as far as it goes, then the world does.

A request with a recorded answer is answered by the tape. A request that was recorded without an answer
is made again if it only reads; if it writes, the plan decides. A request that is not on the tape is made
for real where the program is past the recordings of its lane. Where the lane still has recordings, the
program has parted from the tape: the request is refused, or everything is asked for real from then on.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from playhead_core.claims import is_claimed
from playhead_core.errors import Mismatch, OutcomeUnknown, PlayheadError, WorldBlocked
from playhead_core.facts import Ask, Content, End, Exchange, ExchangeId, Fidelity, Part
from playhead_core.rerun.open_connections import continues_live, stays_open
from playhead_core.rerun.plans import Edit, Plan
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_instrumentation.recorder.decision import Decision, Live, Played, Refused
from playhead_instrumentation.replayer.player import FoundRecording, Player, is_rebuilt
from playhead_semconv import attributes as a

INTERRUPTED = ("KeyboardInterrupt", "SystemExit")
"""Errors that a user causes; they are no answer of the world."""

NOTHING = b'{"return":null}'
"""The answer of a tool that is taken as done."""


class Branch(Player):
    """Answers from a tape, then from the world. Safe from any thread."""

    def __init__(self, tape: IndexedTape, plan: Plan) -> None:
        super().__init__(tape)
        self._plan = plan
        self._lock = threading.Lock()
        self._left = Counter(recording.id.lane for recording in self.left())
        self._going: set[ExchangeId] = set()
        self._gone = False
        self.signals = [one for one in self.signals if one.seq < self._signals_end()]
        self._sent: dict[int, tuple[str, bytes, Sequence[Edit]]] = {}
        """Last request of each lane to the world: key, body as the program made it, edits."""
        self.parted = False
        """Whether the program has made a request that the tape does not have; from then on the tape
        answers nothing."""
        self.on_parting: Callable[[PlayheadError], None] = _ignore
        """Called with the reason when the program no longer matches the recording."""
        self.on_live: Callable[[], None] = _nothing
        """Called before something is asked for real."""
        self.played_out: Callable[[], bool] = lambda: True
        """Whether everything on the tape was delivered."""

    @property
    def closed(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the tape may still answer."""
        return not self.parted and (self._plan.offline or bool(self._left.total()))

    @property
    def fenced(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether nothing has gone to the world yet and nothing may."""
        if self._plan.offline:
            return True
        return not self._gone and (bool(self._left.total()) or not self.played_out())

    def going(self) -> bool:
        """Whether an exchange that was asked for real is still open."""
        return bool(self._going)

    def _signals_end(self) -> int:
        """Number of the fact from which on signals do not come.

        An edited exchange goes another way; and a signal after the last request has ended the run that
        is resumed.
        """
        edits, changed = self._plan.edits, self._plan.changed
        numbers = [one.first_seq for one in self.exchanges()]
        edited = [one.first_seq for one in self.exchanges() if str(one.id) in edits]
        last = max(numbers, default=0) if self._plan.mode == "resume" else sys.maxsize
        return min((last, *edited, *changed))

    def _is_answered(self, exchange: Exchange) -> bool:
        """Whether a recording can answer: as `is_answered`, or a signal ends it again."""
        if exchange.end is None or is_answered(exchange):
            return exchange.end is not None
        return any(one.seq > exchange.first_seq for one in self.signals)

    def answered(self) -> Iterator[Exchange]:
        """The recordings that may answer."""
        edits = self._plan.edits
        return (
            one
            for one in self.exchanges()
            if (self._is_answered(one) or continues_live(one)) and str(one.id) not in edits
        )

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Decision:
        """See `Source.decide`."""
        if self.parted:
            return self._goes(id, ask, body)
        standing = self.standing(id.lane, ask)
        if standing is not None:
            return standing
        with self._lock:
            found = self.find(id, ask, body)
            if found is not None:
                self._left[found.exchange.id.lane] -= 1
            elif self._left[id.lane] > 0:
                refused = self.refusal(id, ask, body)
                if self._plan.agrees or self._plan.offline:
                    return refused
                self._parts(refused.error)
        return self._goes(id, ask, body) if found is None else self._found(id, ask, body, found)

    def _found(self, id: ExchangeId, ask: Ask, body: bytes, match: FoundRecording) -> Decision:
        found = match.exchange
        known = str(found.id)
        if known in self._plan.edits:
            return self._goes(id, ask, body, found)
        if self._is_answered(found):
            if found.first_seq in self._plan.changed:
                return self._changed(found)
            return self._played(match, id)
        if continues_live(found):
            return replace(self._played(match, id), reopen=self._plan.reopen)
        unknown = self._plan.unknown.get(known)
        if is_claimed(found):
            gone = self._goes(id, ask, body, found)
            return replace(gone, unknown=unknown or "rule") if isinstance(gone, Live) else gone
        if found.ask.effect == "write":
            if unknown is None:
                return Refused(_unknown(found, f"playhead {self._plan.mode} RUN --on-unknown resend"))
            if unknown == "skip":
                return self._skipped(found)
        return self._goes(id, ask, body, found)

    def _skipped(self, found: Exchange) -> Decision:
        if found.id.kind != "tool":
            said = "begun anew" if stays_open(found) else "sent again"
            return Refused(_unknown(found, f"it was not {said}, as the user said"))
        part = Part(Content.chunk(NOTHING), 0, None)
        done = Exchange(found.id, found.ask, found.time_ns, head=found.head, parts=[part])
        done.end, done.first_seq = End("complete"), found.first_seq
        return self._changed(done, made=True)

    def _changed(self, exchange: Exchange, *, made: bool = False) -> Played:
        """The decision for an answer that is not the recorded one. ``made``: it is on no tape."""
        rebuilt = is_rebuilt(exchange)
        if rebuilt:  # it stays so, and the fidelity does not say that it is edited
            details = {**exchange.ask.details, a.PLAYHEAD_EDITED_ANSWER: True}
            exchange = replace(exchange, ask=replace(exchange.ask, details=details))
        return Played(
            exchange,
            self._tape.instance,
            self._tape.read,
            fidelity=Fidelity.SEMANTIC if rebuilt else Fidelity.CHANGED,
            elsewhere=False,
            made=made or rebuilt,
        )

    def _goes(self, id: ExchangeId, ask: Ask, body: bytes, found: Exchange | None = None) -> Decision:
        if self._plan.offline:
            return Refused(
                WorldBlocked(
                    f"{ask.key} is not on the tape, and the fork is offline",
                    hint="let it go on: leave --offline out",
                )
            )
        self.on_live()
        self._gone = True
        self._going.add(id)
        edits = self._edits(id, ask, body, found)
        instance = b"" if found is None else self._tape.instance
        return Live(found, instance, edits, ended=self._going.discard)

    def _edits(self, id: ExchangeId, ask: Ask, body: bytes, found: Exchange | None) -> Sequence[Edit]:
        """The edits of a request. A retry that an SDK makes of an edited request gets the same edits."""
        key, sent, edits = self._sent.get(id.lane, ("", b"", ()))
        if found is not None:
            edits = self._plan.edits.get(str(found.id), ())
        elif (key, sent) != (ask.key, body):
            edits = ()
        self._sent[id.lane] = ask.key, body, edits
        return edits

    def _parts(self, error: PlayheadError) -> None:
        self.parted = True
        self.on_parting(error)


def is_answered(exchange: Exchange) -> bool:
    """Whether a recording can answer: it has an end that the process did not cause itself."""
    end = exchange.end
    return end is not None and not (end.error is not None and end.error.qualname in INTERRUPTED)


def _unknown(found: Exchange, hint: str) -> Mismatch:
    if stays_open(found):
        return OutcomeUnknown(f"{found.ask.key} was open where the tape ends", hint=hint)
    return OutcomeUnknown(
        f"{found.ask.key} was sent and not answered: whether it was done is not known", hint=hint
    )


def _ignore(error: PlayheadError) -> None:
    """No-op callback."""


def _nothing() -> None:
    """No-op callback."""
