"""The result of replaying a golden, with the assertions that a test can make about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NoReturn

from playhead_replay.diff.side import Side
from playhead_replay.launch.configuration import ReplayResult
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
"""Largest number of lines shown of a failure; the rest is in the tape that was kept."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a replay may do without failing its test."""

    unused: Literal["fail", "allow"] = "fail"
    """``allow``: the program may leave recordings unused."""
    outcome: Literal["same", "changed"] = "same"
    """``changed``: output, states and exit status may differ, as after a bug fix."""

    edited: Literal["fail", "allow"] = "fail"
    """``allow``: edits at the fork that the golden is made of may answer, though the program differs."""

    def broken(self, report: Report) -> list[Divergence]:
        """The divergences in ``report`` that are not allowed."""
        allowed = {"stdout", "stderr", "exit", "state"} if self.outcome == "changed" else set[str]()
        if self.unused == "allow":
            allowed.add("unused")
        return [one for one in report.divergences if one.kind not in allowed]


class NotSaid(LookupError):
    """The program has not reported such a state."""


class ReplayedGolden:
    """A golden that was replayed by the current code."""

    def __init__(
        self, golden: Path, recorded: Run, now: Run, done: ReplayResult, test: str = ""
    ) -> None:
        """``done``: the replay of ``recorded``, with ``now`` as its run.

        ``test``: pytest's id of the test.
        """
        self.golden = golden
        self.recorded = recorded
        """The recorded run."""
        self.run = now
        """The run of the replay."""
        self.report = done.report
        self.stdout = done.stdout.decode(errors="replace")
        self.stderr = done.stderr.decode(errors="replace")
        self.exit_status = done.returncode
        self._test = test
        # Links each answer to the golden, so that its bytes can be read through the replay's own tape.
        match((one for tape in recorded.tapes for one in exchanges_of(tape)), now.exchanges)
        self._side = Side(now)

    @property
    def steps(self) -> list[Step]:
        """Calls of models and tools, in order of start."""
        return self.run.steps

    @property
    def tools(self) -> list[str]:
        """Names of the tools that models requested, in order."""
        return self._side.tools

    @property
    def messages(self) -> list[Messages]:
        """Input and output messages of each step."""
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
        """Cost of all calls, at the prices of the day on which they were recorded."""
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
            self._fail(f"no price is known for {', '.join(cost.unpriced)}")
        if cost.usd > Decimal(str(at_most)):
            self._fail(f"cost: {cost}, not at most ${at_most}")

    def state(self, step: int, name: str = "") -> Any:
        """The last state that the program reported up to the end of a step, as plain values.

        ``name``: of the state; by default any. `NotSaid` if none was reported.
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
        return f"playhead show {_short(self.golden)}"


def failure(
    golden: Path, report: Report, broken: Sequence[Divergence], kept: Path | None, node: str
) -> str:
    """The failure message of a diverged golden: both sides, and commands for the next steps."""
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
