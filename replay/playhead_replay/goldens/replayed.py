"""What a test sees of a golden that was replayed, and what it may assert of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NoReturn

from playhead_replay.diff.side import Side
from playhead_replay.report.matching import match
from playhead_replay.report.report import Divergence, Report
from playhead_replay.run.exchanges import exchanges_of
from playhead_replay.run.messages import Messages, derived_attributes
from playhead_replay.run.prices import Cost, cost_of
from playhead_replay.run.run import Run
from playhead_replay.run.steps import Step
from playhead_semconv import attributes as a
from playhead_semconv.facts import Fidelity
from playhead_semconv.rerun.state_documents import at
from playhead_semconv.untrusted.counts import count_in
from playhead_semconv.untrusted.shown_text import visible

LINES = 40
"""Lines of a failure that are shown; the rest is in the tape that was kept."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a replay may do without failing its test."""

    unused: Literal["fail", "allow"] = "fail"
    """Recordings that the program does not ask for any more."""
    outcome: Literal["same", "changed"] = "same"
    """``changed``: output, states and exit status may differ, as after the fix of what failed."""

    edited: Literal["fail", "allow"] = "fail"
    """What was edited at the fork that the golden is made of, and the program does not do by itself."""

    def broken(self, report: Report) -> list[Divergence]:
        """The divergences of ``report`` that are not allowed."""
        allowed = {"stdout", "stderr", "exit", "state"} if self.outcome == "changed" else set[str]()
        if self.unused == "allow":
            allowed.add("unused")
        return [one for one in report.divergences if one.kind not in allowed]


class NotSaid(LookupError):
    """The program has said no such state."""


class Replayed:
    """A golden, replayed by the code as it is now."""

    def __init__(
        self,
        golden: Path,
        recorded: Run,
        now: Run,
        report: Report,
        out: str,
        err: str,
        status: int,
        test: str = "",
    ) -> None:
        """``test``: how pytest calls the test."""
        self.golden = golden
        self.recorded = recorded
        """The run as it was recorded."""
        self.run = now
        """The run as it went now."""
        self.report = report
        self.stdout = out
        self.stderr = err
        self.exit_status = status
        self._test = test
        # So that what a replay took from the golden can be read from its own tape.
        match((one for tape in recorded.tapes for one in exchanges_of(tape)), now.exchanges)
        self._side = Side(now)

    @property
    def steps(self) -> list[Step]:
        """Calls of models and tools, in order of start."""
        return self.run.steps

    @property
    def tools(self) -> list[str]:
        """Names of the tools that models asked for, in order."""
        return self._side.tools

    @property
    def messages(self) -> list[Messages]:
        """What each step said and was told."""
        return [seen.messages for seen in self._side.steps]

    @property
    def tokens(self) -> tuple[int, int]:
        """Input and output tokens of all calls."""
        counts = [0, 0]
        for attributes, _ in self._calls():
            counts[0] += count_in(attributes, a.GEN_AI_USAGE_INPUT_TOKENS)
            counts[1] += count_in(attributes, a.GEN_AI_USAGE_OUTPUT_TOKENS)
        return counts[0], counts[1]

    @property
    def cost(self) -> Cost:
        """What all calls would have cost, at the prices of the day they were recorded."""
        return cost_of(self._calls())

    def _calls(self) -> Iterator[tuple[dict[str, Any], int]]:
        for seen in self._side.steps:
            if seen.exchanges:
                span = seen.step.span
                derived = derived_attributes(span.attributes, seen.exchanges[-1])
                yield {**span.attributes, **derived}, self.recorded.started_ns

    @property
    def status(self) -> str:
        """``success`` or ``failure``."""
        failed = self.exit_status or any(one.failed for one in self.run.requests)
        return "failure" if failed else "success"

    def assert_tool_sequence(self, expected: Sequence[str]) -> None:
        """The models asked for exactly these tools, in this order."""
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
        """How often the models asked for the tool ``name``."""
        __tracebackhide__ = True
        count = self.tools.count(name)
        least, most = (times, times) if times is not None else (at_least, at_most)
        self._between(f"calls of {name}", count, least, most)

    def assert_steps(self, *, at_most: int | None = None, at_least: int = 0) -> None:
        """How many steps it took."""
        __tracebackhide__ = True
        self._between("steps", len(self.steps), at_least, at_most)

    def assert_tokens(self, *, at_most: int) -> None:
        """How many tokens all calls used, in and out."""
        __tracebackhide__ = True
        self._between("tokens", sum(self.tokens), 0, at_most)

    def assert_cost(self, *, at_most: float) -> None:
        """How many US dollars all calls would have cost. A model without a known price fails it."""
        __tracebackhide__ = True
        cost = self.cost
        if cost.unpriced:
            self._fail(f"no price is known for {', '.join(cost.unpriced)}")
        if cost.usd > Decimal(str(at_most)):
            self._fail(f"cost: {cost}, not at most ${at_most}")

    def state(self, step: int, name: str = "") -> Any:
        """What the program said last of its state up to the end of a step, in plain values.

        ``name``: of the state; by default whichever was said last. `NotSaid` where none was.
        """
        said = [one for one in self.run.states if one.step <= step and name in ("", one.name)]
        if not said:
            raise NotSaid(f"no state was said up to step {step}")
        return said[-1].value

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

    def assert_status(self, expected: Literal["success", "failure"]) -> None:
        """How it ended."""
        __tracebackhide__ = True
        if self.status != expected:
            self._fail(
                f"it ended in {self.status}", f"  - expected: {expected}", f"  + now: {self.status}"
            )

    def assert_printed(self, text: str) -> None:
        """``text`` is in what it printed on stdout."""
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
        return f"playhead show {_short(self.golden)}"


def failure(
    golden: Path, report: Report, broken: Sequence[Divergence], kept: Path | None, node: str
) -> str:
    """Why a test fails whose golden diverged: both sides, and the commands that go on from there."""
    lines = [f"golden diverged: {golden.name.partition('.')[0]} ({_short(golden)})"]
    for one in broken:
        lines += one.lines()
    if len(lines) > LINES:
        lines = [*lines[:LINES], f"… {len(lines) - LINES} more lines"]
    exact, asked = report.count(Fidelity.EXACT), report.asked
    live = report.count(Fidelity.LIVE)
    lines.append(f"{exact} of {asked} requests exact; {live or 'nothing'} went live")
    lines += [f"unused: {name}" for name in report.unused[:5]]
    for note in report.notes:
        told, asks, _ = note.partition(" give it: ")
        lines += [f"{told} give it: tape.replay(…, headers={{NAME: VALUE}})"] if asks else []
    lines += list(_commands(golden, kept, node))
    return visible("\n".join(lines))


def _commands(golden: Path, kept: Path | None, node: str) -> Iterator[str]:
    if kept is not None:
        yield f"look:   playhead diff {_short(golden)} {_short(kept)}"
    yield f"again:  {_pytest(node)}"
    yield f"accept: {_pytest(node)} --playhead-update, or --playhead-record=all to ask the model again"


def _pytest(node: str) -> str:
    return shlex.join(["pytest", node])


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
