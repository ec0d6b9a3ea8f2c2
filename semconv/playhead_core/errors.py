"""The error tree of playhead.

::

    PlayheadError                 code, what, cause, hint; exit status
    ├── UsageError            (2) the command or request is invalid, or its object does not exist
    │   ├── RunUnknown            run-unknown: no run has that name or id
    │   ├── RunAmbiguous          run-ambiguous: several runs have that prefix
    │   ├── TapeMissing           tape-missing: the run has no tape
    │   ├── ScriptChanged         script-changed: the program differs from the recorded one
    │   ├── ConfigurationError    configuration: an unknown key or an invalid value
    │   ├── PathOutside           path-outside: a path leads out of its folder
    │   ├── CheckpointUnknown     checkpoint-unknown: no checkpoint has that id
    │   ├── CheckpointTaken       checkpoint-taken: another checkpoint has that id
    │   └── StateRefused          state-refused: a value cannot be stored; path and type
    ├── TapeError             (1) a recording
    │   ├── CorruptTape           tape-corrupt: damaged; position
    │   ├── TapeTooNew            tape-too-new: written by a later version
    │   └── TapeGap               tape-gap: facts are missing between two sequence numbers
    ├── Mismatch              (3) replay: the tape has no response to a request
    │   ├── ExchangeUnmatched     exchange-unmatched: no recording; the nearest, the difference
    │   ├── ExchangeExhausted     exchange-exhausted: all recordings of it are used
    │   ├── OutcomeUnknown        outcome-unknown: a write was sent, its result is unknown
    │   └── WorldBlocked          world-blocked: a socket, process or write outside the tape
    ├── WireError             (1) OTLP
    │   ├── MalformedOtlp         otlp-malformed: cannot be decoded
    │   ├── TooLarge              otlp-too-large: over a size limit
    │   ├── ReceiverPath          receiver-path: no OTLP at that address
    │   └── ReceiverRefused       receiver-refused: the endpoint rejects the data
    ├── AskRejected           (1) rejected: an operator or a rule has rejected a request
    ├── ReplayFailed          (1) replay-failed: the program could not be started again
    └── StoreError            (1) the receiver's store
        ├── StoreBusy             store-busy: another receiver uses this data folder
        └── StoreUnavailable      store-unavailable: disk full, read-only, …
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the known word that is closest to ``word``, or None if none is close.

    ``least``: the smallest similarity that counts, from 0 to 1.
    """
    import difflib  # only misspelt words need it

    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=least)), None)


class PlayheadError(Exception):
    """Base of all errors: what happened, the cause, and a command that helps."""

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
    """The command or request is invalid, or its object does not exist."""

    code = "usage"
    exit_status = 2


class RunUnknown(UsageError):
    """No run has that name or id."""

    code = "run-unknown"


class RunAmbiguous(UsageError):
    """Several runs have that prefix."""

    code = "run-ambiguous"


class TapeMissing(UsageError):
    """The run has no tape."""

    code = "tape-missing"


class ScriptChanged(UsageError):
    """The program differs from the recorded one."""

    code = "script-changed"


class ConfigurationError(UsageError):
    """An unknown key or an invalid value."""

    code = "configuration"


class PathOutside(UsageError):
    """A path in a tape, golden, backup or name leads out of its folder."""

    code = "path-outside"


class CheckpointUnknown(UsageError):
    """No checkpoint has that id."""

    code = "checkpoint-unknown"


class CheckpointTaken(UsageError):
    """A checkpoint with another state or lineage has that id."""

    code = "checkpoint-taken"


class StateRefused(UsageError):
    """A state cannot be stored. The text names the path and type of the unsupported value.

    ``path``: keys and indexes from the state to that value.
    """

    code = "state-refused"
    path: tuple[object, ...] = ()

    def below(self, key: object) -> Self:
        """Prefix the path with ``key``, under which a larger value holds this one, and return self."""
        self.path = (key, *self.path)
        return self


class TapeError(PlayheadError):
    """A recording cannot be used."""

    code = "tape"


class CorruptTape(TapeError):
    """A damaged file; the text has the position of the damage."""

    code = "tape-corrupt"


class TapeTooNew(TapeError):
    """The file has a format that this version does not know."""

    code = "tape-too-new"


class TapeGap(TapeError):
    """Facts are missing between two sequence numbers."""

    code = "tape-gap"


class Mismatch(PlayheadError):
    """At replay: the tape has no response to a request of the program."""

    code = "mismatch"
    exit_status = 3


class ExchangeUnmatched(Mismatch):
    """No recording of this request. The text has the nearest one and the first difference."""

    code = "exchange-unmatched"


class ExchangeExhausted(Mismatch):
    """All recordings of this request are used."""

    code = "exchange-exhausted"


class OutcomeUnknown(Mismatch):
    """A write was sent, but its result is unknown."""

    code = "outcome-unknown"


class WorldBlocked(Mismatch):
    """A socket, process or write that is not on the tape."""

    code = "world-blocked"


class WireError(PlayheadError):
    """An error of OTLP."""

    code = "otlp"


class MalformedOtlp(WireError):
    """The bytes cannot be decoded."""

    code = "otlp-malformed"


class TooLarge(WireError):
    """The request exceeds a size limit."""

    code = "otlp-too-large"


class AskRejected(PlayheadError):
    """An operator or a rule has rejected a request of the program; it was not performed."""

    code = "rejected"


class ReplayFailed(PlayheadError):
    """The program could not be started again, or left no tape."""

    code = "replay-failed"


class ReceiverPath(WireError):
    """No OTLP at that address: the endpoint or its path is wrong."""

    code = "receiver-path"


class ReceiverRefused(WireError):
    """The endpoint rejects the data: a wrong token, or a broken server."""

    code = "receiver-refused"


class StoreError(PlayheadError):
    """An error of the receiver's store."""

    code = "store"


class StoreBusy(StoreError):
    """Another receiver uses this data folder."""

    code = "store-busy"


class StoreUnavailable(StoreError):
    """The store cannot accept writes now: disk full, read-only, …"""

    code = "store-unavailable"
