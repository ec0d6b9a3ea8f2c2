"""The result of replaying a golden, with the assertions that a test can make about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NoReturn

from playhead_core.facts import Fidelity
from playhead_core.rerun.state_documents import at
from playhead_core.untrusted.shown_text import visible
from playhead_genai.prices import dollars
from playhead_replay.goldens.conditions import Condition
from playhead_replay.goldens.golden_paths import short
from playhead_replay.goldens.observed import NotSaid, ObservedRun
from playhead_replay.report.matching import match
from playhead_replay.report.report import Divergence, Report
from playhead_replay.run.exchanges import exchanges_of
from playhead_replay.run.run import Run
from playhead_replay.runner.configuration import ReplayResult

LINES = 40
"""Largest number of lines shown of a failure; the rest is in the tape that was kept."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a replay may do without failing its test."""

    unused: Literal["fail", "allow"] = "fail"
    """``allow``: the program may leave recordings unused."""
    outcome: Literal["same", "changed"] | None = None
    """``changed``: output, states, reports and exit status may differ, as after a bug fix. None: the
    same, unless the golden says what is expected."""

    edited: Literal["fail", "allow"] = "fail"
    """``allow``: edits at the fork that the golden is made of may answer, though the program differs."""

    def without_outcome(self) -> Expectation:
        """The same of a golden that says itself what is expected."""
        return self if self.outcome is not None else replace(self, outcome="changed")

    def broken(self, report: Report, *, live_model: bool = False) -> list[Divergence]:
        """The divergences in ``report`` that are not allowed.

        ``live_model``: models answered again, so only unanswered requests and checks count.
        """
        if live_model:
            return [one for one in report.divergences if one.kind in ("blocked", "check")]
        allowed = set[str]()
        if self.outcome == "changed":
            allowed = {"stdout", "stderr", "exit", "state", "report"}
        if self.unused == "allow":
            allowed.add("unused")
        return [one for one in report.divergences if one.kind not in allowed]


class ReplayedGolden(ObservedRun):
    """A golden that was replayed by the current code."""

    def __init__(
        self, golden: Path, recorded: Run, now: Run, done: ReplayResult, test: str = ""
    ) -> None:
        """``done``: the replay of ``recorded``, with ``now`` as its run.

        ``test``: pytest's id of the test.
        """
        # Links each answer to the golden, so that its bytes can be read through the replay's own tape.
        match((one for tape in recorded.tapes for one in exchanges_of(tape)), now.exchanges)
        super().__init__(now, priced_at_ns=recorded.started_ns)
        self.golden = golden
        self.recorded = recorded
        """The recorded run."""
        self.report = done.report
        self.stdout = done.stdout.decode(errors="replace")
        self.stderr = done.stderr.decode(errors="replace")
        self.exit_status = done.returncode
        self._test = test

    @property
    def printed(self) -> str:
        """Its output on stdout."""
        return self.stdout

    @property
    def exit_code(self) -> int | None:
        """Exit status of the process, negative for a signal."""
        return self.exit_status

    @property
    def status(self) -> str:
        """``success`` or ``failure``."""
        failed = self.exit_status or any(one.failed for one in self.requests)
        return "failure" if failed else "success"

    def assert_tool_sequence(self, expected: Sequence[str]) -> None:
        """The models requested exactly these tools, in this order."""
        __tracebackhide__ = True
        wanted, found = list(expected), self.tools
        if wanted == found:
            return
        at = next(
            (n for n, (one, other) in enumerate(zip(wanted, found, strict=False)) if one != other),
            min(len(wanted), len(found)),
        )
        sides = [names[at] if at < len(names) else "(none)" for names in (wanted, found)]
        self._fail(
            f"tool {at + 1} is another one",
            f"  - expected: {sides[0]}   of {wanted}",
            f"  + now:      {sides[1]}   of {found}",
        )

    def assert_tool(
        self, name: str, *, times: int | None = None, at_most: int | None = None, at_least: int = 0
    ) -> None:
        """Check how often the models requested the tool ``name``."""
        __tracebackhide__ = True
        count = self.tools.count(name)
        least, most = (times, times) if times is not None else (at_least, at_most)
        self._between(f"calls of {name}", count, least, most)

    def assert_steps(self, *, at_most: int | None = None, at_least: int = 0) -> None:
        """Check the number of steps."""
        __tracebackhide__ = True
        self._between("steps", len(self.steps), at_least, at_most)

    def assert_tokens(self, *, at_most: int) -> None:
        """Check the total number of input and output tokens of all calls."""
        __tracebackhide__ = True
        self._between("tokens", sum(self.tokens), 0, at_most)

    def assert_cost(self, *, at_most: float) -> None:
        """Check the cost of all calls in US dollars.

        A model without a known price fails the assertion.
        """
        __tracebackhide__ = True
        cost = self.cost
        if cost.unpriced:
            self._fail(
                f"no price is known for {', '.join(one or '(no model)' for one in cost.unpriced)}"
            )
        if cost.usd > Decimal(str(at_most)):
            self._fail(f"cost: {cost}, not at most {dollars(at_most)}")

    def assert_state(self, step: int, path: str, value: Any, *, name: str = "") -> None:
        """At the end of a step the state held ``value`` at ``path``, as in ``order.lines[0]``.

        ``path``: empty for the whole state. ``name``: as in `state`.
        """
        __tracebackhide__ = True
        try:
            found = at(self.state(step, name), path)
        except NotSaid as problem:
            self._fail(f"state after step {step}: {problem}", f"  - expected: {value!r}")
        except LookupError:
            self._fail(f"state after step {step}: {path} matches nothing", f"  - expected: {value!r}")
        if found != value:
            self._fail(
                f"state after step {step} differs at {path or 'its root'}",
                f"  - expected: {value!r}",
                f"  + now:      {found!r}",
            )

    def assert_decision(self, chosen: str, *, question: str = "", times: int | None = None) -> None:
        """Check that the program reported such a decision, and how often if ``times`` is given.

        ``question``: the decision answers it; by default any.
        """
        __tracebackhide__ = True
        decisions = [one for one in self.decisions if question in ("", one.text("question"))]
        count = sum(one.text("chosen") == chosen for one in decisions)
        if count if times is None else count == times:
            return
        wanted = chosen if times is None else f"{chosen}, {times} times"
        found = ", ".join(one.text("chosen") for one in decisions) or "(no decision)"
        asked = f" on {question!r}" if question else ""
        self._fail(f"decision{asked}", f"  - expected: {wanted}", f"  + now:      {found}")

    def assert_signal(self, type: str, code: str = "", value: Any = None) -> None:
        """Check that the program reported such a signal; by default with any code and value."""
        __tracebackhide__ = True
        for one in self.signals:
            if one.text("type") == type and code in ("", one.text("code")):
                if value is None or one.fields.get("value") == value:
                    return
        wanted = " ".join(map(str, filter(lambda part: part not in ("", None), (type, code, value))))
        found = ", ".join(f"{one.text('type')} {one.text('code')}" for one in self.signals)
        found = found or "(no signal)"
        self._fail(f"no signal {type}", f"  - expected: {wanted}", f"  + now:      {found}")

    def assert_phases(self, expected: Sequence[str]) -> None:
        """Check that the program entered exactly these phases, in this order."""
        __tracebackhide__ = True
        if list(expected) != self.phases:
            sides = f"  - expected: {list(expected)}", f"  + now:      {self.phases}"
            self._fail("phases differ", *sides)

    def assert_status(self, expected: Literal["success", "failure"]) -> None:
        """Check the final status of the run."""
        __tracebackhide__ = True
        if self.status != expected:
            self._fail(
                f"it ended in {self.status}", f"  - expected: {expected}", f"  + now: {self.status}"
            )

    def assert_printed(self, text: str) -> None:
        """Check that ``text`` is in the output on stdout."""
        __tracebackhide__ = True
        if text not in self.stdout:
            self._fail(f"it did not print {text!r}", *self.stdout.splitlines()[-10:])

    def _between(self, what: str, count: int, least: int, most: int | None) -> None:
        __tracebackhide__ = True
        if count >= least and (most is None or count <= most):
            return
        wanted = f"exactly {least}" if most == least else f"at most {most}" if most is not None else ""
        if most is None:
            wanted = f"at least {least}"
        self._fail(f"{what}: {count}, not {wanted}")

    def _fail(self, what: str, *lines: str) -> NoReturn:
        __tracebackhide__ = True
        again = [f"again: {_pytest(self._test)}"] if self._test else []
        told = [f"{self.golden.name}: {what}", *lines, f"look: {self.look}", *again]
        raise AssertionError(visible("\n".join(told))) from None

    @property
    def look(self) -> str:
        """The command that shows the golden."""
        return f"playhead show {short(self.golden)}"


@dataclass(frozen=True, slots=True)
class Failing:
    """A golden whose replay is not as it should be, for the message about it."""

    golden: Path
    test: str
    """Pytest's id of the test."""
    kept: Path | None = None
    """Where the tape of the replay was put."""

    @property
    def name(self) -> str:
        """Name of the golden."""
        return self.golden.name.partition(".")[0]

    def diverged(self, report: Report, broken: Sequence[Divergence]) -> str:
        """Both sides of what differs, and commands for the next steps; each thing once."""
        lines = [f"golden diverged: {self.name} ({short(self.golden)})", *_sides(broken)]
        if len(lines) > LINES:
            lines = [*lines[:LINES], f"… {len(lines) - LINES} more lines"]
        exact, asked = f"{report.count(Fidelity.EXACT)} of {report.asked} requests exact", ""
        if rebuilt := report.count(Fidelity.SEMANTIC):
            asked = f", {rebuilt} semantic: answers rebuilt from spans"
        lines.append(f"{exact}{asked}; {report.count(Fidelity.LIVE) or 'nothing'} went live")
        for note in report.notes:
            told, asks, _ = note.partition(" give it: ")
            lines += [f"{told} give it: tape.replay(…, headers={{NAME: VALUE}})"] if asks else []
        lines += self._next_steps(asks_anew=any(one.kind == "blocked" for one in broken))
        return visible("\n".join(lines))

    def unfulfilled(self, wrong: Sequence[tuple[Condition, str]]) -> str:
        """What was expected of the run, and what there was instead."""
        lines = [f"golden {self.name}: not as expected ({short(self.golden)})"]
        for (_, found), same in groupby(wrong, lambda one: (one[0].subject, one[1])):
            lines += [f"  - expected: {condition}" for condition, _ in same]
            lines.append(f"  + now:      {found}")
        lines += self._look()
        return visible("\n".join(lines))

    def _look(self) -> Iterator[str]:
        if self.kept is not None:
            yield f"look:   playhead diff {short(self.golden)} {short(self.kept)}"
        yield f"again:  {_pytest(self.test)}"

    def _next_steps(self, *, asks_anew: bool) -> Iterator[str]:
        yield from self._look()
        if asks_anew:
            yield "try:    the same with --playhead-live=model, tools from the tape"
            yield "accept: the same with --playhead-record=all, which records everything again"
        else:
            yield "accept: the same with --playhead-update"


FOLLOWS = ("stdout", "stderr", "exit", "state", "report", "unused", "inbound", "effect")
"""Kinds of divergences that follow from a request that was refused."""


def _sides(broken: Sequence[Divergence]) -> Iterator[str]:
    """What differs. What follows from a refused request is only named."""
    refused = next((at for at, one in enumerate(broken) if one.kind == "blocked"), len(broken))
    follows = [one for one in broken[refused:] if one.kind in FOLLOWS]
    for one in broken:
        if one not in follows:
            yield from one.lines()
    unused = sum(one.kind == "unused" for one in follows)
    named = dict.fromkeys(one.kind for one in follows if one.kind != "unused")
    said = [f"{', '.join(named)} differ{'s' if len(named) == 1 else ''}"] if named else []
    said += [f"{unused} recording{'s' if unused > 1 else ''} unused"] if unused else []
    if said:
        yield f"after that: {'; '.join(said)}"


def _pytest(node: str) -> str:
    return shlex.join(["pytest", node])
