"""Fold repeated steps of a run. A fold says "same" only of equal calls; of others it names what differs.

Steps are grouped into *units*: a step or a frame (an agent, a workflow) with everything under it. Units
of one level are compared by number: equal numbers stand for equal content. Numbers are found bottom-up,
so that the search is linear in the number of rows. A row that must be shown (a failure, a step that goes
on or was repeated, the last step) has no number, and neither have the units that contain it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead_analysis.folding import find_folds
from playhead_cli.output.words import count
from playhead_genai.messages import Part, Text, ToolCall, ToolCallResponse, plain
from playhead_genai.readable_text import named_arguments, spelt, text_of
from playhead_replay.run.histories import GrowingHistory
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

if TYPE_CHECKING:
    from playhead_cli.output.step_rows import Row
    from playhead_replay import RecordedExchange, Run, Span, Step
    from playhead_replay.timeline.tool_calls import ToolCallStep

FEWEST_DIFFERENT: Final = 24
"""Rows that a fold of different steps hides at least: fewer are read faster than a summary."""
FEWEST_IN_FRAMES: Final = 12
"""The same for rows that belong to agents, workflows and other frames."""
MOST_NAMED: Final = 4
"""Differences, and kinds of steps, that a fold names."""

NOUNS: Final[Mapping[str, str]] = {
    Operation.CHAT: "chat",
    Operation.EMBEDDINGS: "embedding",
    Operation.INVOKE_AGENT: "agent",
    Operation.RETRIEVAL: "retrieval",
}
"""What operations are counted as; others by their label."""

Keys: TypeAlias = Sequence[Hashable | None]


@dataclass(frozen=True, slots=True)
class StepFold:
    """Rows shown as one line: from ``hidden`` up to ``end``. ``first``: first row of the pattern."""

    first: int
    hidden: int
    end: int
    times: int
    text: str = ""
    """``6–23 same ×9``, or ``3–40 38 × execute_tool search, differs: query``."""


class StepFolds:
    """Finds the folds of a run."""

    def __init__(
        self,
        run: Run,
        rows: Sequence[Row],
        tools: Mapping[int, Sequence[ToolCallStep]],
        answer: Callable[[Step], int],
        exchanges: Callable[[Step], Sequence[RecordedExchange]],
        failing: Collection[int],
    ) -> None:
        """``tools``: derived tool calls by step. ``answer``: returns the hash of a response.

        ``failing``: numbers of the steps with a failure. They are folded only if they are the same.
        """
        self._run = run
        self._rows = rows
        self._tools = tools
        self._answer = answer
        self._exchanges = exchanges
        self._failing = failing
        self._ends = _ends_of(rows)
        self._last = max((at for at, row in enumerate(rows) if row.step is not None), default=-1)

    def find(self) -> list[StepFold]:
        """Return the folds in order, without overlap."""
        looks = [self._look(at) for at in range(len(self._rows))]
        same = self._same(looks)
        taken = {at for fold in same for at in range(fold.first, fold.end)}
        kinds = [
            None if look is None or at in taken or self._fails(at) else _kind(self._rows[at])
            for at, look in enumerate(looks)
        ]
        different = [
            fold
            for fold in self._repeats(self._without_last(kinds), frozenset, FEWEST_IN_FRAMES)
            if fold.end - fold.hidden >= FEWEST_DIFFERENT or self._has_frames(fold)
        ]
        found = [self._with_text(fold, f"same ×{fold.times - 1}") for fold in same]
        found += [self._with_text(fold, self._differences(fold)) for fold in different]
        return sorted(found, key=lambda fold: fold.hidden)

    def _fails(self, at: int) -> bool:
        step = self._rows[at].step
        return step is not None and step.number in self._failing

    def _look(self, at: int) -> tuple[Hashable, ...] | None:
        """Equal for rows that look alike; None for a row that must be shown."""
        row = self._rows[at]
        span, step = row.span, row.step
        if span.status == "error" or span.ended_ns is None:
            return None
        if step is None:
            return row.depth, row.label
        calls = self._tools.get(step.number) if self._tools else None
        if step.attempts and step.retries:
            return None
        if calls and any(call.error or call.attempt > 1 for call in calls):
            return None
        return row.depth, row.label, str(span.attributes.get(a.GEN_AI_TOOL_CALL_ARGUMENTS, ""))

    def _same(self, looks: Keys) -> list[StepFold]:
        """Find repetitions of equal steps.

        If steps look alike, compare their responses, and if these are equal too, the requests:
        a history may be long.
        """
        history = GrowingHistory()
        keys = self._compared(looks, self._answer)
        keys = self._compared(keys, lambda step: self._content(step, history))
        return self._repeats(self._without_last(keys), tuple)

    def _without_last(self, keys: Keys) -> Keys:
        """Return ``keys`` with None for the last step, which is always shown."""
        return [None if at == self._last else key for at, key in enumerate(keys)]

    def _compared(self, keys: Keys, more: Callable[[Step], Hashable | None]) -> Keys:
        """Return ``keys`` with the value of ``more`` for repeated steps; None for all other rows."""
        found: list[Hashable | None] = [None] * len(keys)
        repeated = set[int]()
        for fold in self._repeats(keys, tuple):
            pattern, end = fold.hidden - fold.first, fold.end
            # A begun repetition may complete one of a pattern that is shifted, once more is compared.
            while end < len(keys) and keys[end] is not None and keys[end] == keys[end - pattern]:
                end += 1
            repeated.update(range(fold.first, end))
        for at in sorted(repeated):  # in order: a conversation grows
            row = self._rows[at]
            value = _texts(row.span) if row.step is None else more(row.step)
            found[at] = None if value is None else (keys[at], value)
        return found

    def _content(self, step: Step, history: GrowingHistory) -> Hashable | None:
        """Return request and response of a step without ids; of a conversation only the new part.

        None if they are not recorded: then there is no telling whether two steps are the same.
        """
        at = step.span.attributes
        calls = tuple(
            (call.name, text_of(call.arguments), text_of(call.result))
            for call in self._tools.get(step.number, ())
        )
        if step.span.operation in ("", Operation.EXECUTE_TOOL):
            exchanges = self._exchanges(step)
            if not exchanges and a.GEN_AI_TOOL_CALL_ARGUMENTS not in at:
                return None
            return step.span.url, *(one.digest for one in exchanges), self._answer(step), calls
        messages = self._run.messages(step, history)
        if not messages.input:
            exchanges = self._exchanges(step)
            query = at.get(a.GEN_AI_RETRIEVAL_QUERY_TEXT)
            said = (*(one.digest for one in exchanges), *(() if query is None else (text_of(query),)))
            return (*said, self._answer(step)) if said else None
        system = tuple(map(_spelling, messages.system))
        return (
            system,
            tuple((one.role, *map(_spelling, one.parts)) for one in [*messages.input, *messages.output]),
            calls,
        )

    def _repeats(
        self, keys: Keys, join: Callable[[Iterable[Any]], Hashable], fewest_hidden: int = 6
    ) -> list[StepFold]:
        """Return the repeated units of every level. ``join``: makes one key of those of the parts."""
        if keys.count(None) == len(keys):
            return []
        numbers = self._numbers(keys, join)
        found: list[StepFold] = []
        levels = [(0, len(self._rows))]
        while levels:
            units = self._units(*levels.pop())
            sizes = [self._ends[at] - at for at in units]
            in_folds = set[int]()
            for fold in find_folds([numbers[at] for at in units], sizes, fewest_hidden):
                in_folds.update(range(fold.first, fold.end))
                last = units[fold.end - 1]
                hidden = units[fold.first + fold.pattern]
                found.append(StepFold(units[fold.first], hidden, self._ends[last], fold.times))
            levels += [
                (at + 1, self._ends[at])
                for number, at in enumerate(units)
                if sizes[number] > 1 and number not in in_folds
            ]
        return found

    def _numbers(self, keys: Keys, join: Callable[[Iterable[Any]], Hashable]) -> list[int | None]:
        numbers: list[int | None] = [None] * len(keys)
        known: dict[Hashable, int] = {}
        childless = join(())
        for at in range(len(keys) - 1, -1, -1):
            if keys[at] is None:
                continue
            if self._ends[at] == at + 1:
                numbers[at] = known.setdefault((keys[at], childless), len(known))
                continue
            parts = [numbers[one] for one in self._units(at + 1, self._ends[at])]
            if None not in parts:
                numbers[at] = known.setdefault((keys[at], join(parts)), len(known))
        return numbers

    def _units(self, begin: int, end: int) -> list[int]:
        """Return the rows of one level."""
        units: list[int] = []
        while begin < end:
            units.append(begin)
            begin = self._ends[begin]
        return units

    def _has_frames(self, fold: StepFold) -> bool:
        return any(row.step is None for row in self._rows[fold.hidden : fold.end])

    def _with_text(self, fold: StepFold, said: str) -> StepFold:
        rows = self._rows[fold.hidden : fold.end]
        numbers = [row.step.number for row in rows if row.step is not None]
        first, last = min(numbers, default=0), max(numbers, default=0)
        part = "" if last - first < len(numbers) else f"{len(numbers)} of "
        text = f"{part}{first}–{last} {said}" if numbers else said
        return StepFold(fold.first, fold.hidden, fold.end, fold.times, text)

    def _differences(self, fold: StepFold) -> str:
        """Return what a fold of different steps hides, and in what they differ."""
        hidden = self._rows[fold.hidden : fold.end]
        steps = _counted(row for row in hidden if row.step is not None)
        frames = _counted(row for row in hidden if row.step is None)
        differing = list(dict.fromkeys(self._differing(self._rows[fold.first : fold.end])))
        more = ["…"] if len(differing) > MOST_NAMED else []
        differs = f"differs: {', '.join([*differing[:MOST_NAMED], *more])}"
        if not differing:
            differs = "content not recorded"
        return f"{' ▸ '.join(filter(None, (steps, frames)))}, {differs}"

    def _differing(self, rows: Sequence[Row]) -> Iterable[str]:
        groups: dict[Hashable, list[Row]] = {}
        for row in rows:
            groups.setdefault(_kind(row), []).append(row)
        for alike in groups.values():
            steps = [row.step for row in alike if row.step is not None]
            if not steps:
                if len({row.label for row in alike}) > 1:
                    yield NOUNS.get(alike[0].span.operation, "name")
                continue
            arguments = list(_differing_arguments(steps))
            yield from arguments
            if len({self._answer(step) for step in steps}) > 1:
                yield "results" if steps[0].span.operation == Operation.EXECUTE_TOOL else "answers"
            elif not arguments and len(steps) > 1 and self._is_recorded(steps[0]):
                yield "messages"

    def _is_recorded(self, step: Step) -> bool:
        at = step.span.attributes
        return bool(self._exchanges(step)) or a.GEN_AI_INPUT_MESSAGES in at


def _ends_of(rows: Sequence[Row]) -> list[int]:
    """Return for each row the index after the last row under it."""
    ends = [len(rows)] * len(rows)
    open_rows: list[int] = []
    for at, row in enumerate(rows):
        while open_rows and rows[open_rows[-1]].depth >= row.depth:
            ends[open_rows.pop()] = at
        open_rows.append(at)
    return ends


def _kind(row: Row) -> Hashable:
    """Return the key of rows that may differ in what they say: a frame by its operation."""
    named = row.span.operation or row.label if row.step is None else row.label
    return row.depth, row.step is None, named


def _texts(span: Span) -> Hashable:
    return tuple(
        text_of(span.attributes.get(name))
        for name in (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES)
    )


def _spelling(part: Part) -> Hashable:
    """Return a part of a message without ids and signatures, which differ between equal messages."""
    if isinstance(part, Text):
        return part.content
    if isinstance(part, ToolCall):
        return "call", part.name, text_of(part.arguments)
    if isinstance(part, ToolCallResponse):
        return "result", text_of(part.response)
    fields = plain(part)
    return spelt({name: fields[name] for name in type(part).__struct_fields__ if name in fields})


def _counted(rows: Iterable[Row]) -> str:
    """``13 chats, 2 × execute_tool search``."""
    kinds = Counter(NOUNS.get(row.span.operation) or f"× {row.label}" for row in rows)
    if len(kinds) > MOST_NAMED:
        return count(kinds.total(), "step")
    return ", ".join(
        f"{number} {kind}" if kind.startswith("×") else count(number, kind)
        for kind, number in kinds.items()
    )


def _differing_arguments(steps: Sequence[Step]) -> Iterable[str]:
    """Yield the names of arguments that differ; ``arguments`` if they have no names."""
    values: dict[str, set[str]] = {}
    for step in steps:
        given = step.span.attributes.get(a.GEN_AI_TOOL_CALL_ARGUMENTS)
        named = named_arguments(given)
        for name, value in ({"arguments": given} if named is None else named).items():
            values.setdefault(name, set()).add(text_of(value))
    return (name for name, different in values.items() if len(different) > 1)
