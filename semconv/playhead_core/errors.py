"""The error tree of playhead.

::

    PlayheadError                 code, what, cause, hint; exit status
    ├── UsageError            (2) what was asked for does not make sense or is not there
    │   ├── RunUnknown            run-unknown: no run of that name or id
    │   ├── RunAmbiguous          run-ambiguous: the prefix fits several
    │   ├── TapeMissing           tape-missing: a run of which no tape was recorded
    │   ├── ScriptChanged         script-changed: not the program that was recorded
    │   ├── ConfigurationError    configuration: an unknown key or an impossible value
    │   ├── PathOutside           path-outside: a path that leaves the folder it is meant for
    │   ├── CheckpointUnknown     checkpoint-unknown: no checkpoint of that id
    │   ├── CheckpointTaken       checkpoint-taken: another checkpoint has that id
    │   └── StateRefused          state-refused: a value that cannot be stored, with its path and type
    ├── TapeError             (1) the record itself
    │   ├── CorruptTape           tape-corrupt: damaged, with the position
    │   ├── TapeTooNew            tape-too-new: written by a later version
    │   └── TapeGap               tape-gap: facts are missing between two sequence numbers
    ├── Mismatch              (3) replay: the program asks what the tape does not answer
    │   ├── ExchangeUnmatched     exchange-unmatched: names the nearest recording and the difference
    │   ├── ExchangeExhausted     exchange-exhausted: every recording of it is used
    │   ├── OutcomeUnknown        outcome-unknown: it was sent and not answered, and may have been done
    │   └── WorldBlocked          world-blocked: a socket, process or write that the tape does not answer
    ├── WireError             (1) OTLP
    │   ├── MalformedOtlp         otlp-malformed: cannot be decoded
    │   ├── TooLarge              otlp-too-large: over a size limit
    │   ├── ReceiverPath          receiver-path: no OTLP at that address
    │   └── ReceiverRefused       receiver-refused: takes nothing from us
    ├── AskRejected           (1) rejected: an operator or a rule has rejected what the program asked
    ├── ReplayFailed          (1) replay-failed: the program could not be started again
    └── StoreError            (1) the receiver's store
        ├── StoreBusy             store-busy: another receiver writes to this data directory
        └── StoreUnavailable      store-unavailable: disk full, read-only, …
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the known word that is closest to ``word``, or None if none is close.

    ``least``: the smallest similarity that counts, from 0 to 1.
    """
    import difflib  # where nothing is misspelt nothing needs it

    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=least)), None)


class PlayheadError(Exception):
    """Base of all errors of playhead: what happened, why, and a command that helps."""

    code = "error"
    exit_status = 1

    def __init__(self, what: str, *, cause: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.what}"]
        if self.cause:
            lines.append(f"cause: {self.cause}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UsageError(PlayheadError):
    """What was asked for does not make sense or is not there."""

    code = "usage"
    exit_status = 2


class RunUnknown(UsageError):
    """No run of that name or id."""

    code = "run-unknown"


class RunAmbiguous(UsageError):
    """The prefix fits several runs."""

    code = "run-ambiguous"


class TapeMissing(UsageError):
    """A run of which no tape was recorded."""

    code = "tape-missing"


class ScriptChanged(UsageError):
    """The program is not the one that was recorded."""

    code = "script-changed"


class ConfigurationError(UsageError):
    """An unknown key or an impossible value."""

    code = "configuration"


class PathOutside(UsageError):
    """A path of a tape, a golden, a backup or a name leaves the folder it is meant for."""

    code = "path-outside"


class CheckpointUnknown(UsageError):
    """No checkpoint of that id."""

    code = "checkpoint-unknown"


class CheckpointTaken(UsageError):
    """A checkpoint of another state or lineage has that id."""

    code = "checkpoint-taken"


class StateRefused(UsageError):
    """A state that cannot be stored: names the path and type of the value that hinders it.

    ``path``: keys and positions from the state to that value.
    """

    code = "state-refused"
    path: tuple[object, ...] = ()

    def below(self, key: object) -> Self:
        """The same refusal, of a value that stands under ``key`` in a larger one."""
        self.path = (key, *self.path)
        return self


class TapeError(PlayheadError):
    """Something is wrong with a record."""

    code = "tape"


class CorruptTape(TapeError):
    """A damaged file, with the position of the damage."""

    code = "tape-corrupt"


class TapeTooNew(TapeError):
    """A file of a format that this version does not know."""

    code = "tape-too-new"


class TapeGap(TapeError):
    """Facts are missing between two sequence numbers."""

    code = "tape-gap"


class Mismatch(PlayheadError):
    """At replay: the program asks what the tape does not answer."""

    code = "mismatch"
    exit_status = 3


class ExchangeUnmatched(Mismatch):
    """No recording of this request; names the nearest one and the first difference."""

    code = "exchange-unmatched"


class ExchangeExhausted(Mismatch):
    """Every recording of this request is used."""

    code = "exchange-exhausted"


class OutcomeUnknown(Mismatch):
    """Something that writes was sent and not answered: it may have been done."""

    code = "outcome-unknown"


class WorldBlocked(Mismatch):
    """A socket, process or write that the tape does not answer."""

    code = "world-blocked"


class WireError(PlayheadError):
    """Something is wrong with OTLP bytes."""

    code = "otlp"


class MalformedOtlp(WireError):
    """Bytes that cannot be decoded."""

    code = "otlp-malformed"


class TooLarge(WireError):
    """A request over a size limit."""

    code = "otlp-too-large"


class AskRejected(PlayheadError):
    """An operator or a rule has rejected what the program asked; it was not done."""

    code = "rejected"


class ReplayFailed(PlayheadError):
    """The program could not be started again, or left no tape."""

    code = "replay-failed"


class ReceiverPath(WireError):
    """No OTLP at that address: the endpoint is a wrong one, or its path is."""

    code = "receiver-path"


class ReceiverRefused(WireError):
    """The endpoint takes nothing from us: a wrong token, or a server that is broken."""

    code = "receiver-refused"


class StoreError(PlayheadError):
    """Something is wrong with the receiver's store."""

    code = "store"


class StoreBusy(StoreError):
    """Another receiver writes to this data directory."""

    code = "store-busy"


class StoreUnavailable(StoreError):
    """The store cannot take anything now: disk full, read-only, …"""

    code = "store-unavailable"
