"""The fidelity report: how true a replay was, and where it first differed from the tape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from playhead_core.boundaries import EXCHANGES
from playhead_core.difference import Difference
from playhead_core.facts import Fidelity

SCHEMA_VERSION = 1

_ROOT = re.compile(r"\$\.?(?=.)")
"""The root in a JSON path, as in ``$.messages[0]`` and ``message 1 $.id``."""

SHOWN_CHARS = 60
"""Characters of an output's value that a line of the report shows."""

Verdict: TypeAlias = Literal["identical", "volatile", "semantic", "diverged", "blocked"]
EXIT_CODES: dict[Verdict, int] = {
    "identical": 0,
    "volatile": 0,
    "semantic": 0,
    "diverged": 1,
    "blocked": 3,
}

DivergenceKind: TypeAlias = Literal[
    "request",
    "blocked",
    "moved",
    "live",
    "response",
    "stdout",
    "stderr",
    "exit",
    "inbound",
    "effect",
    "state",
    "report",
    "check",
    "unused",
]

SHOWN = (Fidelity.MOVED, Fidelity.CHANGED, Fidelity.BLOCKED)
"""Fidelities that the text always counts; ``live`` appears only if it occurs."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """One place where the replay and the tape do not agree."""

    kind: DivergenceKind
    what: str
    """The exchange and its key, or the output, in a few words."""
    step: int | None
    """Step of the recorded run; for an output, the last step before it."""
    after: bool = False
    """Whether it happened after that step rather than in it."""
    difference: Difference | None = None
    nearest: str = ""
    """For a blocked request: name of the most similar recording."""
    changed: bool = False
    """For a blocked request: whether that recording asked the same place for something else."""
    detail: str = ""
    seq: int = 0
    """Its position on the *now* tape; orders divergences."""
    process: str = ""
    """The process of the run; empty for the one in which the run began."""

    @property
    def place(self) -> str:
        """``step 3``, ``after step 3``, ``before step 1``, ``step 3 in child.py``."""
        where = f" in {self.process}" if self.process else ""
        if self.step is None:
            return "before step 1" if self.after and not where else f"outside any step{where}"
        return f"after step {self.step}{where}" if self.after else f"step {self.step}{where}"

    def lines(self) -> Iterator[str]:
        """As lines of text: what and where, then both sides."""
        difference = self.difference
        path = "" if difference is None else _readable_path(difference.path)
        of_request = self.kind in ("request", "blocked")
        shows_path = bool(path) and not of_request and path != self.what
        yield f"{self.place}: {self.what}, {path}" if shows_path else f"{self.place}: {self.what}"
        if self.detail:
            yield f"  {self.detail}"
        if difference is None:
            return
        if of_request:
            recording = f"recording {self.nearest}" if self.nearest else "its recording"
            words = f"the request no longer matches {recording}: {path} changed"
            if self.nearest and not self.changed:
                words = (
                    f"the request matches no recording; the nearest, {self.nearest}, differs in {path}"
                )
            yield f"  {words}"
        recorded, now = _readable_sides(difference)
        yield f"  - recorded: {recorded}"
        yield f"  + now:      {now}"

    def to_json(self) -> dict[str, Any]:
        """As an object of plain values."""
        difference = self.difference
        return {
            "kind": self.kind,
            "what": self.what,
            "step": self.step,
            "after_step": self.after,
            "path": None if difference is None else difference.path,
            "tape": None if difference is None else difference.tape,
            "now": None if difference is None else difference.now,
            "nearest": self.nearest or None,
            "detail": self.detail or None,
            "process": self.process or None,
        }


@dataclass(frozen=True, slots=True)
class ProcessCheck:
    """The verdict on one process of a run that has several."""

    name: str
    verdict: Verdict | Literal["not replayed"]
    exact: int = 0
    asked: int = 0
    detail: str = ""
    """Why it was not replayed."""

    def __str__(self) -> str:
        said = self.detail or f"exact {self.exact}/{self.asked}"
        return f"process {self.name}: {self.verdict}, {said}"


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """The comparison of one output."""

    name: str
    """stdout, stderr, exit or (of a service) inbound response, requests, responses, effects, states."""
    same: bool
    tape: str
    """Its size or value on the tape."""
    now: str
    process: str = ""
    """The process it belongs to; empty for the one in which the run began."""

    @property
    def full_name(self) -> str:
        """``stdout``, ``stdout of child.py``."""
        return f"{self.name} of {self.process}" if self.process else self.name

    def __str__(self) -> str:
        if not self.same:
            return f"{self.full_name} differs"
        shown = self.tape if len(self.tape) <= SHOWN_CHARS else self.tape[: SHOWN_CHARS - 1] + "…"
        return f"{self.full_name} {shown} identical"


@dataclass(slots=True)
class Report:
    """The comparison of a tape with the tape of its replay."""

    run: str
    level: str
    """exchanges, causal or strict."""
    boundaries: dict[str, dict[Fidelity, int]]
    """Counts by kind of boundary.

    ``unused`` counts recordings, the others count requests of the replay.
    """
    outputs: list[OutputCheck]
    divergences: list[Divergence]
    """In the order in which they happened."""
    unused: list[str] = field(default_factory=list[str])
    """Names of the recordings that answered no request."""
    redacted: int = 0
    """Number of values that were redacted before they reached the tape."""
    network: str = ""
    """What blocked the network: ``kernel`` or ``process``; empty when nothing was launched."""
    files: str = ""
    """What blocked changes to files: ``kernel`` or ``process``."""
    others: str = ""
    """What blocked access to other processes and to shared memory and queues."""
    notes: list[str] = field(default_factory=list[str])
    reads: dict[str, dict[Fidelity, int]] = field(default_factory=dict[str, dict[Fidelity, int]])
    """Counts of ambient reads, by boundary: ``clock``, ``entropy``."""
    steps: dict[int, str] = field(default_factory=dict[int, str])
    """Names of the steps of the recorded run, by number."""
    fidelities: dict[int, Fidelity] = field(default_factory=dict[int, Fidelity])
    """The worst fidelity among the requests of each step of the first process that made any."""
    unkept: dict[str, str] = field(default_factory=dict[str, str])
    """Boundaries that the recording does not keep → the lowest level that does."""
    varied: list[str] = field(default_factory=list[str])
    """Outputs that differ only in values that the replay's clock and entropy handed out."""
    edited: list[str] = field(default_factory=list[str])
    """Parts that were edited at a fork and that the program did not produce itself."""
    strict_match: bool = False
    """Whether requests that differ only in handed-out values count as different."""
    processes: list[ProcessCheck] = field(default_factory=list[ProcessCheck])
    """All processes of a run that has several, beginning with the one in which the run began."""

    def checked(self, name: str) -> ProcessCheck:
        """This report as one line of another report."""
        return ProcessCheck(name, self.verdict, self.count(Fidelity.EXACT), self.asked)

    def include(self, name: str, other: Report) -> None:
        """Add the report on another process of the run."""
        self.processes.append(other.checked(name))
        for mine, others in ((self.boundaries, other.boundaries), (self.reads, other.reads)):
            for kind, counts in others.items():
                of_kind = mine.setdefault(kind, {})
                for fidelity, count in counts.items():
                    of_kind[fidelity] = of_kind.get(fidelity, 0) + count
        self.outputs += [replace(check, process=name) for check in other.outputs]
        self.divergences += [replace(one, process=name) for one in other.divergences]
        self.unused += [f"{one} in {name}" for one in other.unused]
        self.notes += [f"{name}: {note}" for note in other.notes]
        self.redacted += other.redacted
        self.unkept = {**other.unkept, **self.unkept}
        self.varied += [f"{one} in {name}" for one in other.varied]
        self.edited += [f"{one} in {name}" for one in other.edited]

    def count(self, fidelity: Fidelity) -> int:
        """Number of exchanges with this fidelity, over all boundaries."""
        return sum(counts.get(fidelity, 0) for counts in self.boundaries.values())

    @property
    def asked(self) -> int:
        """Number of exchanges that the program requested in the replay."""
        return sum(self.count(one) for one in Fidelity if one is not Fidelity.UNUSED)

    @property
    def keeps_files(self) -> bool:
        """Whether the recording includes files, so that a replay need not change them for real."""
        return "files" not in self.unkept

    @property
    def first_divergence(self) -> Divergence | None:
        """None when the replay was identical."""
        return self.divergences[0] if self.divergences else None

    @property
    def verdict(self) -> Verdict:
        """``blocked`` takes precedence over ``diverged``; ``identical``: nothing that was recorded
        differs.

        ``volatile``: only values that the replay's clock and entropy handed out differ. ``semantic``:
        the same, but answers on the tape were rebuilt from spans. At ``exchanges`` a request that was
        recorded with another body is a divergence: what the body was made from is not on the tape. Only
        what has no recording at all is ``blocked`` there.
        """
        blocked = self.count(Fidelity.BLOCKED)
        if self.level == EXCHANGES:
            blocked -= sum(one.changed for one in self.divergences)
        if blocked:
            return "blocked"
        if self.divergences:
            return "diverged"
        if self.count(Fidelity.SEMANTIC):
            return "semantic"
        return "volatile" if self.varied or self.count(Fidelity.VOLATILE) else "identical"

    @property
    def exit_code(self) -> int:
        """0 identical, semantic or volatile (1 if the match is strict), 1 diverged, 3 blocked."""
        verdict = self.verdict
        return 1 if verdict == "volatile" and self.strict_match else EXIT_CODES[verdict]

    @property
    def edit_note(self) -> str:
        """Name the edits that the result is based on; empty if there are none."""
        if not self.edited:
            return ""
        return f"edited at a fork or by an operator, not by the program: {', '.join(self.edited)}"

    def lines(self) -> Iterator[str]:
        """The report as lines of text."""
        yield self._totals()
        if len(self.boundaries) > 1:
            for kind, counts in sorted(self.boundaries.items()):
                parts = [f"{one} {counts[one]}" for one in Fidelity if counts.get(one)]
                yield f"  {kind}: {', '.join(parts)}"
        if self.reads:
            yield "reads: " + "; ".join(_read_counts(*item) for item in sorted(self.reads.items()))
        shown = [check for check in self.outputs if not check.process or not check.same]
        yield "outputs: " + ", ".join(map(str, shown))
        yield from map(str, self.processes)
        yield from (f"note: {note}" for note in self._notes())
        first = self.first_divergence
        if first is not None:
            opening, *sides = first.lines()
            yield f"first divergence {_at(first, opening)}"
            yield from sides
            more = len(self.divergences) - 1
            if more:
                yield f"{more} more: --json lists all of them"
        yield self._conclusion()

    def to_json(self) -> dict[str, Any]:
        """As an object of plain values."""
        first = self.first_divergence
        return {
            "schema_version": SCHEMA_VERSION,
            "run": self.run,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "level": self.level,
            "asked": self.asked,
            "fidelity": {str(one): self.count(one) for one in Fidelity},
            "boundaries": {
                kind: {str(one): counts.get(one, 0) for one in Fidelity}
                for kind, counts in sorted(self.boundaries.items())
            },
            "reads": {
                boundary: {str(one): counts.get(one, 0) for one in Fidelity}
                for boundary, counts in sorted(self.reads.items())
            },
            "outputs": {
                check.full_name: {"identical": check.same, "tape": check.tape, "now": check.now}
                for check in self.outputs
            },
            "first_divergence": None if first is None else first.to_json(),
            "divergences": [one.to_json() for one in self.divergences],
            "step_fidelity": {str(step): str(one) for step, one in sorted(self.fidelities.items())},
            "processes": [
                {
                    "name": one.name,
                    "verdict": one.verdict,
                    "exact": one.exact,
                    "asked": one.asked,
                    "detail": one.detail or None,
                }
                for one in self.processes
            ],
            "unused": self.unused,
            "redacted": self.redacted,
            "not_kept": self.unkept,
            "volatile_outputs": self.varied,
            "edited": self.edited,
            "network": self.network or None,
            "files": self.files or None,
            "other_processes": self.others or None,
            "notes": self.notes,
        }

    def _totals(self) -> str:
        counts = [f"exact {self.count(Fidelity.EXACT)}/{self.asked}"]
        if self.count(Fidelity.VOLATILE):
            counts.append(f"volatile {self.count(Fidelity.VOLATILE)}")
        if self.count(Fidelity.SEMANTIC):
            counts.append(f"semantic {self.count(Fidelity.SEMANTIC)}")
        counts += [f"{one} {self.count(one)}" for one in SHOWN]
        if self.count(Fidelity.LIVE):
            counts.append(f"live {self.count(Fidelity.LIVE)}")
        counts.append(f"unused {self.count(Fidelity.UNUSED)}")
        return "  ".join(counts)

    def _notes(self) -> Iterator[str]:
        if self.network:
            who = f"network blocked by the {self.network}, changes to files by the {self.files}"
            if not self.keeps_files and self.files == "process":
                who = f"network blocked by the {self.network}, changes to files not blocked"
            elif self.network == self.files:
                who = f"network and changes to files blocked by the {self.network}"
            if self.others == "process":
                who += ", but code in C can reach other processes"
            yield f"{who}; {self.level} order"
        if self.redacted:
            yield f"{self.redacted} value{'s' if self.redacted > 1 else ''} redacted on the tape"
        yield from (f"{one} differs only in times and random values" for one in self.varied)
        if self.edited:
            yield self.edit_note
        by_level: dict[str, list[str]] = {}
        for name, level in self.unkept.items():
            by_level.setdefault(level, []).append(name)
        for level, names in by_level.items():
            yield f"not recorded, so not compared: {', '.join(names)} (level {level} records them)"
        yield from self.notes

    def _conclusion(self) -> str:
        first = self.first_divergence
        if first is None:
            rests = ", based on an edit" if self.edited else ""
            return f"{self.verdict}{rests} (exit {self.exit_code})"
        blocked = next((one for one in self.divergences if one.kind == "blocked"), None)
        if blocked is None:
            return f"diverged {_at(first, first.place)} (exit {self.exit_code})"
        if blocked is first:
            return f"diverged and blocked {_at(first, first.place)} (exit {self.exit_code})"
        blocked_at = _at(blocked, blocked.place)
        return f"diverged {_at(first, first.place)}, blocked {blocked_at} (exit {self.exit_code})"


def _at(divergence: Divergence, text: str) -> str:
    """``at`` and ``text``, which begins with the place of ``divergence``; ``after step 3`` as it is."""
    return f"at {text}" if divergence.place.startswith("step") else text


def _readable_path(path: str) -> str:
    """Return a path without the mark of the root: ``$.messages[0]`` is ``messages[0]``."""
    return _ROOT.sub("", path) if path != "$" else "the body"


def _readable_sides(difference: Difference) -> tuple[str, str]:
    """Return both sides, JSON strings without quotes and escapes if that loses nothing.

    Quotes stay if only one side is a string (``1`` and ``"1"`` must differ), or if a string has line
    breaks, other control characters, or spaces at its ends.
    """
    sides = difference.tape, difference.now
    if "$" not in difference.path:
        return sides
    try:
        tape, now = map(json.loads, sides)
    except ValueError:  # a long side is cut, one that is absent is no JSON
        return sides
    if all(
        isinstance(side, str) and side and side.isprintable() and side.strip() == side
        for side in (tape, now)
    ):
        return tape, now
    return sides


def _read_counts(boundary: str, counts: dict[Fidelity, int]) -> str:
    return f"{boundary} " + ", ".join(f"{one} {counts[one]}" for one in Fidelity if counts.get(one))
