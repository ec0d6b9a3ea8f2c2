"""What a failure is: type, code, step, evidence, and whether the program recovered from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from playhead_replay.failures.codes import FailureType
from playhead_replay.json_objects.findings import FailureItem

VERSION: Final = 5
"""Changes with the rules of this package: failures that another version derived may differ."""
LONGEST_EVIDENCE: Final = 300
"""Characters of the text that shows a failure."""

Source: TypeAlias = Literal[
    "status", "exception", "finish_reason", "result", "arguments", "output", "check"
]
"""What a failure was derived from."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of a step, or of the whole run."""

    type: FailureType
    code: str
    """One of `codes.CODES`."""
    step: int | None
    """None: it belongs to the run and no step."""
    place: str
    """``3``; ``3.1`` for a tool call that only the messages report; empty without a step."""
    name: str
    """Of the model, the tool or the exception."""
    source: Source
    evidence: str
    recovered: bool = False
    times: int = 1
    """Attempts that failed in this way."""

    def to_json(self) -> FailureItem:
        """Return it as an object of plain values."""
        return {
            "type": self.type,
            "code": self.code,
            "step": self.step,
            "place": self.place or None,
            "name": self.name,
            "source": self.source,
            "evidence": self.evidence,
            "recovered": self.recovered,
            "times": self.times,
            "derived": True,
            "version": VERSION,
        }


class FailingStep(NamedTuple):
    """The step of which a failure may be found; most have none."""

    type: FailureType
    step: int
    place: str
    name: str

    def by(self, source: Source, code: str, evidence: str) -> Failure:
        """Return a failure of the step."""
        evidence = " ".join(evidence.split())[:LONGEST_EVIDENCE]
        return Failure(self.type, code, self.step, self.place, self.name, source, evidence)
