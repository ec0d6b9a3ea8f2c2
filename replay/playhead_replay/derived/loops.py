"""Find the loops of a run: equal calls with equal results, again and again.

The same code finds them while an agent runs (`playhead_core.control.loops`). Here the results are known,
so calls that repeat with other results, as polls do, are told apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from playhead_core.control.loops import REPEATS, Action, action_of, loops_in
from playhead_core.errors import TapeError
from playhead_genai.messages import Text
from playhead_genai.readable_text import news
from playhead_genai.steps import FRAMES, Role
from playhead_replay.json_objects.findings import LoopItem
from playhead_replay.run.histories import GrowingHistory
from playhead_replay.run.run import Run, once_per_run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step, role_of
from playhead_replay.timeline.tool_calls import ToolCallStep, tool_calls_of
from playhead_semconv import attributes as a

MOST_BODY_BYTES = 1 << 16
"""Larger bodies of HTTP requests and responses are not compared."""
MOST_ACTIONS = 20_000
"""Actions of a run that are searched, the latest ones."""


@dataclass(frozen=True, slots=True)
class RunLoop:
    """Equal rounds of actions in a run."""

    period: int
    """Actions of a round."""
    times: int
    """Rounds."""
    names: list[str]
    """What the actions of a round are: names of tools, models or requests."""
    first: str
    """The first step, or call of a step: ``3``, ``3.1``."""
    last: str
    started_ns: int
    ended_ns: int
    same_result: bool
    """Whether the rounds had the same results. If not, it does not count as a loop: a poll."""

    @property
    def identity(self) -> str:
        """The same for this loop while it grows."""
        return f"{self.first} {' '.join(self.names)}"

    def to_json(self) -> LoopItem:
        """Return it as an object of plain values."""
        return {
            "period": self.period,
            "times": self.times,
            "names": self.names,
            "first": self.first,
            "last": self.last,
            "started_ns": self.started_ns,
            "ended_ns": self.ended_ns,
            "same_result": self.same_result,
            "derived": True,
        }


class _Acted(NamedTuple):
    action: Action
    name: str
    place: str
    started_ns: int
    ended_ns: int


@once_per_run
def loops_of(run: Run) -> list[RunLoop]:
    """Return the loops of a run, and its repeated calls with other results."""
    history, agents = GrowingHistory(), _agents(run)
    acted = [
        _acted(run, one, history, agents) for one in _steps_of(run, tool_calls_of(run))[-MOST_ACTIONS:]
    ]
    actions = [one.action for one in acted]
    if all(one.result is None for one in actions):
        return []
    loops = list(loops_in(actions))
    inside = {place for loop in loops for place in range(loop.first, loop.last + 1)}
    asked = [
        msgspec.structs.replace(
            one,
            what=(place,) if place in inside else one.what,
            result=one.result and True,
            patience=REPEATS,
        )
        for place, one in enumerate(actions)
    ]
    found = [(loop, True) for loop in loops] + [(loop, False) for loop in loops_in(asked)]
    return [
        RunLoop(
            loop.period,
            loop.times,
            [one.name for one in acted[loop.first : loop.first + loop.period]],
            acted[loop.first].place,
            acted[loop.last].place,
            acted[loop.first].started_ns,
            acted[loop.last].ended_ns,
            same,
        )
        for loop, same in sorted(found, key=lambda pair: pair[0].first)
    ]


def _steps_of(run: Run, calls: Sequence[ToolCallStep]) -> list[Step | ToolCallStep]:
    """Return what a run did, in order of steps. A call that a span reports too counts once."""
    reported = {call.span.span_id for call in calls if call.span is not None}
    of_step: dict[int, list[ToolCallStep]] = defaultdict(list)
    for call in calls:
        of_step[call.step.number].append(call)
    found: list[Step | ToolCallStep] = []
    for step in run.steps:
        if step.number in of_step:
            found += of_step[step.number]
        elif step.span.span_id not in reported and not step.span.pending:
            found.append(step)
    return found


def _agents(run: Run) -> dict[str, Span]:
    """Return the innermost agent around each span, by the id of the span."""
    found: dict[str, Span] = {}
    for span in run.spans:  # parents come before their children
        if span.children:
            agent = span if span.operation in FRAMES else found.get(span.span_id)
            if agent is not None:
                found.update((child.span_id, agent) for child in span.children)
    return found


def _acted(
    run: Run, one: Step | ToolCallStep, history: GrowingHistory, agents: Mapping[str, Span]
) -> _Acted:
    span = one.span if isinstance(one, Step) else one.step.span
    ended_ns = span.ended_ns or span.started_ns
    if isinstance(one, Step):
        name = _name_of(one)
        action = _action(run, one, name, history)
        acted = _Acted(action, name, str(one.number), span.started_ns, ended_ns)
    else:
        result = one.error or msgspec.to_builtins(one.result)
        action = action_of(one.name, msgspec.to_builtins(one.arguments), result, failed=bool(one.error))
        acted = _Acted(action, one.name, one.number, one.started_ns, one.ended_ns or ended_ns)
    agent = agents.get(span.span_id)
    action.began, action.ended = acted.started_ns, acted.ended_ns
    action.within = None if agent is None else agent.span_id
    action.since = acted.started_ns if agent is None else agent.started_ns
    return acted


def _action(run: Run, step: Step, name: str, history: GrowingHistory) -> Action:
    """Return the action of a model call without tool calls, of a tool, or of a request."""
    span, at = step.span, step.span.attributes
    if role_of(span) >= Role.CALL:
        messages = run.messages(step, history)
        asked, said = _texts(news(messages.input)), _texts(messages.output)
        result = span.error or said or None
        return action_of(name, asked, result, failed=span.failed)
    if a.GEN_AI_TOOL_NAME in at:
        result = span.error or at.get(a.GEN_AI_TOOL_CALL_RESULT)
        return action_of(name, at.get(a.GEN_AI_TOOL_CALL_ARGUMENTS), result, failed=span.failed)
    exchanges = run.exchanges_of(step)
    status = at.get(a.HTTP_RESPONSE_STATUS_CODE)
    failed = span.failed or (isinstance(status, int) and status >= 400)
    try:
        if exchanges and sum(exchanges[-1].chunk_sizes) <= MOST_BODY_BYTES:
            body = exchanges[-1].response.decode("utf-8", "replace")
            return action_of(name, exchanges[-1].digest.hex(), [status, body], failed=failed)
    except TapeError:
        pass
    return action_of(name, "", None)


def _name_of(step: Step) -> str:
    at, span = step.span.attributes, step.span
    return str(at.get(a.GEN_AI_TOOL_NAME, "")) or f"{span.name} {span.url.geturl()}".strip()


def _texts(messages: Sequence[Any]) -> list[str]:
    return [part.content for one in messages for part in one.parts if isinstance(part, Text)]
