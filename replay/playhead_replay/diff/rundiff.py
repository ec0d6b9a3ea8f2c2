"""The differences between two runs, step by step, and where they first differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from playhead_core.difference import Difference, body_differences, json_differences, text_difference
from playhead_core.errors import TapeMissing
from playhead_genai.messages import OutputMessage
from playhead_genai.prices import Cost, cost_of
from playhead_genai.readable_text import text_of_messages
from playhead_replay.diff.alignment import Pair, align, moved
from playhead_replay.diff.side import ComparedStep, Side
from playhead_replay.json_objects.comparisons import Diff, DifferenceItem, DiffSide
from playhead_replay.run.run import Run
from playhead_replay.run.token_usage import sum_of

SCHEMA_VERSION = 1

SHOWN = 20
"""Largest number of differences that are kept per request or response."""

IDS = ("id", "tool_call_id", "call_id", "previous_response_id", "item_id")
"""Names of fields in which providers return a new id each time; these count as no difference."""

ABSENT = object()

DifferenceKind: TypeAlias = Literal[
    "request", "response", "error", "state", "report", "removed", "added", "moved"
]


@dataclass(frozen=True, slots=True)
class StepDifference:
    """A single difference."""

    kind: DifferenceKind
    """What differs: request, response, error, later state or report; or a step is in one run only."""
    left: int | None
    """Number of the step in the left run; None: the step was added."""
    right: int | None
    """Number of the step in the right run; None: the step was removed."""
    label: str
    """``chat``, ``execute_tool search``, ``GET /orders``."""
    path: str
    """``request.messages[3].content``; empty if the whole step differs."""
    left_value: str
    right_value: str
    follows: bool = False
    """Whether it only repeats an earlier difference, as a message history does."""

    @property
    def number(self) -> int:
        """Number of the step; that of the left run if there is one."""
        return self.left or self.right or 0

    def to_json(self) -> DifferenceItem:
        """As an object of plain values."""
        return {
            "kind": self.kind,
            "left_step": self.left,
            "right_step": self.right,
            "label": self.label,
            "path": self.path or None,
            "left": self.left_value,
            "right": self.right_value,
            "follows": self.follows,
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures of a whole run, with the calls that a fork or a resume played from its tape."""

    status: str
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    duration_ns: int | None
    cost: Cost

    @classmethod
    def of(cls, run: Run) -> Totals:
        """The totals of a run."""
        ended, bearers = run.ended_ns, run.token_bearers
        usage = sum_of(bearers)
        return cls(
            run.status,
            len(run.steps),
            len(run.errors),
            usage.input_tokens,
            usage.output_tokens,
            None if ended is None else max(ended - run.started_ns, 0),
            cost_of((span.attributes, span.started_ns) for span in bearers),
        )

    def to_json(self, run: str) -> DiffSide:
        """As an object of plain values. ``run``: its name."""
        return {
            "run": run,
            "status": cast("Any", self.status),
            "steps": self.steps,
            "errors": self.errors,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "duration_ns": self.duration_ns,
            "cost_usd": self.cost.known_usd,
        }


@dataclass(slots=True)
class RunDiff:
    """Comparison of two runs."""

    left: str
    right: str
    """Names of the runs."""
    pairs: list[Pair]
    """Pairs of step numbers; None if one run has no such step."""
    differences: list[StepDifference]
    """In order of the steps."""
    outcome: Difference | None
    """How the outcomes differ: exit status or exception, else output; None: they do not."""
    tools: dict[str, tuple[int, int]]
    """Number of calls of each tool, left and right."""
    totals: tuple[Totals, Totals]
    tool_sequences: tuple[list[str], list[str]] = field(default=([], []))

    @property
    def first(self) -> StepDifference | None:
        """The first difference; None if no step differs."""
        return self.differences[0] if self.differences else None

    @property
    def same(self) -> list[int]:
        """Numbers of the left run's steps without a difference."""
        differing = {one.left for one in self.differences}
        return [
            left.number
            for left, right in self.pairs
            if left is not None and right is not None and left.number not in differing
        ]

    @property
    def identical(self) -> bool:
        """Whether neither a step nor the outcome differs."""
        return not self.differences and self.outcome is None

    def of(self, left: int | None, right: int | None) -> list[StepDifference]:
        """The differences of one pair of steps."""
        return [one for one in self.differences if (one.left, one.right) == (left, right)]

    def to_json(self) -> Diff:
        """As an object of plain values."""
        first, outcome = self.first, self.outcome
        return {
            "schema_version": SCHEMA_VERSION,
            "left": self.totals[0].to_json(self.left),
            "right": self.totals[1].to_json(self.right),
            "identical": self.identical,
            "same_steps": self.same,
            "first_difference": None if first is None else first.to_json(),
            "differences": [one.to_json() for one in self.differences],
            "steps": [
                {
                    "left": None if left is None else left.number,
                    "right": None if right is None else right.number,
                }
                for left, right in self.pairs
            ],
            "tools": {name: {"left": a, "right": b} for name, (a, b) in self.tools.items()},
            "tool_sequence": {"left": self.tool_sequences[0], "right": self.tool_sequences[1]},
            "outcome": None
            if outcome is None
            else {"path": outcome.path, "left": outcome.tape, "right": outcome.now},
        }


def diff(left: Run, right: Run) -> RunDiff:
    """Compare two runs. If one has no tape, by what spans say of both."""
    by_spans = not (left.exchanges and right.exchanges)
    sides = Side(left, by_spans=by_spans), Side(right, by_spans=by_spans)
    pairs = align(sides[0].steps, sides[1].steps)
    counts = [Counter(side.tools) for side in sides]
    tools = {
        name: (counts[0][name], counts[1][name])
        for name in dict.fromkeys([*sides[0].tools, *sides[1].tools])
    }
    return RunDiff(
        left.name,
        right.name,
        pairs,
        list(_Differences(pairs)),
        _outcome(left, right),
        tools,
        (Totals.of(left), Totals.of(right)),
        (sides[0].tools, sides[1].tools),
    )


class _Differences:
    """Walks through the pairs and remembers differences: a history repeats them in every request."""

    def __init__(self, pairs: list[Pair]) -> None:
        self._pairs = pairs
        self._moved = {(one, other) for one, other in moved(pairs)}
        self._said: set[tuple[str, str] | int] = set()

    def __iter__(self) -> Iterator[StepDifference]:
        for left, right in self._pairs:
            if left is not None and right is not None:
                yield from self._paired(left, right)
            elif left is not None:
                yield _whole("removed", left, left.number, None)
            elif right is not None:
                yield _whole("added", right, None, right.number)

    def _paired(self, left: ComparedStep, right: ComparedStep) -> Iterator[StepDifference]:
        if (left, right) in self._moved:
            yield StepDifference(
                "moved",
                left.number,
                right.number,
                left.label,
                "",
                f"step {left.number}",
                f"step {right.number}",
            )
        if left.asked != right.asked:
            yield from self._told("request", left, right, _requests(left, right))
        yield from self._told("response", left, right, _responses(left, right))
        errors = left.step.span.error, right.step.span.error
        if errors[0] != errors[1]:
            said = Difference("error", *(one or "(none)" for one in errors))
            yield from self._told("error", left, right, iter([said]))
        if left.said or right.said:
            yield from self._told("state", left, right, _named_values(left.states, right.states))
        if left.reported or right.reported:
            yield from self._told("report", left, right, _named_values(left.reports, right.reports))

    def _told(
        self, kind: DifferenceKind, left: ComparedStep, right: ComparedStep, found: Iterator[Difference]
    ) -> Iterator[StepDifference]:
        for number, one in enumerate(found):
            if number >= SHOWN:
                return
            sides = one.tape, one.now
            known = one.identity or sides
            yield StepDifference(
                kind, left.number, right.number, left.label, one.path, *sides, known in self._said
            )
            self._said.add(known)


def _whole(
    kind: DifferenceKind, seen: ComparedStep, left: int | None, right: int | None
) -> StepDifference:
    said = text_of_messages(seen.messages.output)
    asked = said or seen.request[:200].decode(errors="replace") or seen.key
    sides = (asked, "(absent)") if kind == "removed" else ("(absent)", asked)
    return StepDifference(kind, left, right, seen.label, "", *sides)


def _requests(left: ComparedStep, right: ComparedStep) -> Iterator[Difference]:
    if left.key != right.key:
        yield Difference("request line", left.key, right.key)
    yield from _named("request", body_differences(left.request, right.request))


def _responses(left: ComparedStep, right: ComparedStep) -> Iterator[Difference]:
    sides = left.output, right.output
    if sides[0] or sides[1]:
        messages = left.messages.output, right.messages.output
        if left.by_spans or _forms(messages[0]) == _forms(messages[1]):
            yield from _named("response", json_differences(*sides))
        else:
            yield Difference("response", *(text_of_messages(one) or "(nothing)" for one in messages))
        one, other = left.finish, right.finish
        if left.by_spans:  # not all spans say them
            names = [name for name in one if name in other]
            one, other = {name: one[name] for name in names}, {name: other[name] for name in names}
        yield from _named("response", json_differences(one, other))
    elif left.response != right.response:
        yield from _named("response", body_differences(left.response, right.response))


def _forms(messages: Sequence[OutputMessage]) -> list[list[str]]:
    """The types of the parts of messages."""
    return [[part.type for part in message.parts] for message in messages]


def _named_values(left: dict[str, Any], right: dict[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys([*left, *right]):
        sides = [one.get(name, ABSENT) for one in (left, right)]
        if ABSENT in sides:
            shown = ["(not said)" if one is ABSENT else "(said)" for one in sides]
            yield Difference(name, *shown)
        else:
            yield from _named(name, json_differences(*sides))


def _named(kind: str, found: Iterator[Difference]) -> Iterator[Difference]:
    for one in found:
        if one.path.rpartition(".")[2] in IDS and "(absent)" not in (one.tape, one.now):
            continue
        path = kind + one.path[1:] if one.path.startswith("$") else f"{kind} {one.path}"
        yield replace(one, path=path)


def _outcome(left: Run, right: Run) -> Difference | None:
    if left.status != right.status:
        return Difference("status", left.status, right.status)
    try:
        outputs, others = left.outputs, right.outputs
    except TapeMissing:
        return None
    ends = [str(one.exit) if one.exit is not None else "did not end" for one in (outputs, others)]
    if ends[0] != ends[1]:
        return Difference("exit", ends[0], ends[1])
    found = text_difference(outputs.stdout.data, others.stdout.data)
    return None if found is None else Difference(f"stdout {found.path}", found.tape, found.now)
