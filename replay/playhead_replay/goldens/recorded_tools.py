"""The tools of a recorded run as functions that answer from its tape, for tests of an agent's parts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from playhead_core.errors import ExchangeUnmatched, TapeError
from playhead_core.rerun.state_documents import plain
from playhead_genai.messages import ToolCall, ToolCallResponse
from playhead_replay.diff.side import Side
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.run import Run

SHOWN = 5
"""Number of recorded calls that an error names."""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """One call of a tool."""

    arguments: Any
    """By name; what the model gave if that was no object."""
    result: Any
    error: str = ""
    """What the tool raised, if it did."""

    def fits(self, given: Mapping[str, Any]) -> bool:
        """Whether it was made with these arguments; those that are not given had their defaults."""
        if not isinstance(self.arguments, dict):
            return not given
        recorded = cast("dict[str, Any]", self.arguments)
        return all(name in recorded and recorded[name] == value for name, value in given.items())


class NotRecorded(ExchangeUnmatched, KeyError):
    """The run has no such tool, or no such call of it."""


class ToolFailed(RuntimeError):
    """The tool raised an error when it was recorded."""


class RecordedTool:
    """A tool that answers from the tape: by its arguments, calls with equal ones in their order."""

    def __init__(self, name: str, calls: list[AnsweredCall]) -> None:
        self.__name__ = name
        self.calls = calls
        """The recorded calls, in order."""
        self._answered: dict[str, int] = defaultdict(int)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The recorded result. Asked more often than recorded, it answers with the last one.

        `NotRecorded` if it was never called so; `ToolFailed` if it failed.
        """
        given = self._named(args, kwargs)
        calls = [one for one in self.calls if one.arguments == given]
        calls = calls or [one for one in self.calls if one.fits(given)]
        if not calls:
            shown = ", ".join(_shown(self.__name__, one.arguments) for one in self.calls[:SHOWN])
            more = f" and {len(self.calls) - SHOWN} more" if len(self.calls) > SHOWN else ""
            raise NotRecorded(
                f"the tape has no {_shown(self.__name__, given)}",
                cause=f"it has {shown}{more}",
                hint="record a run that calls it so, or write a stub of your own",
            )
        key = json.dumps(given, sort_keys=True, default=repr)
        number = min(self._answered[key], len(calls) - 1)
        self._answered[key] += 1
        if calls[number].error:
            raise ToolFailed(calls[number].error)
        return calls[number].result

    def _named(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) == 0:
            return kwargs
        names = [name for name in self._parameters() if name not in kwargs]
        if len(args) > 1 or len(names) != 1:
            raise TypeError(f"{self.__name__}: give its arguments by name, as the tape has them")
        return {names[0]: args[0], **kwargs}

    def _parameters(self) -> dict[str, Any]:
        """The arguments of a recorded call, whose order is not that of the function."""
        for one in self.calls:
            if isinstance(one.arguments, dict):
                return cast("dict[str, Any]", one.arguments)
        return {}


class RecordedTools(Mapping[str, RecordedTool]):
    """The tools of a run, by name."""

    def __init__(self, run: Run) -> None:
        self._run = run.name
        marked = _marked(run)
        self._tools = {
            name: RecordedTool(name, calls) for name, calls in {**_spoken(run, marked), **marked}.items()
        }

    def __getitem__(self, name: str) -> RecordedTool:
        """The tool. `NotRecorded` if the run never called it."""
        if name not in self._tools:
            known = ", ".join(self._tools) or "none"
            raise NotRecorded(f"{self._run} calls no tool {name}", cause=f"it calls {known}")
        return self._tools[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


def _marked(run: Run) -> dict[str, list[AnsweredCall]]:
    """What functions under ``@playhead.tool`` returned: plain values."""
    found: dict[str, list[AnsweredCall]] = defaultdict(list)
    for exchange in run.exchanges:
        if exchange.id.kind == "tool" and (call := _recorded(exchange)) is not None:
            found[exchange.key].append(call)
    return dict(found)


def _recorded(exchange: RecordedExchange) -> AnsweredCall | None:
    end = exchange.end
    if end is None:
        return None
    try:
        arguments = plain(json.loads(exchange.request))
        answers = [json.loads(chunk.data) for chunk in exchange.chunks]
    except (TapeError, ValueError, RecursionError):
        return None
    if end.error is not None:
        return AnsweredCall(arguments, None, f"{end.error.qualname}: {end.error.message}")
    said: list[tuple[str, Any]] = [(how, plain(value)) for one in answers for how, value in one.items()]
    yielded = [value for how, value in said if how == "yield"]
    returned = [value for how, value in said if how == "return"]
    return AnsweredCall(arguments, yielded or (returned[-1] if returned else None))


def _spoken(run: Run, marked: Mapping[str, Any]) -> dict[str, list[AnsweredCall]]:
    """Collect the tool results in requests to models, as text, except of ``marked`` tools."""
    asked: dict[str, ToolCall] = {}
    found: dict[str, list[AnsweredCall]] = defaultdict(list)
    for seen in Side(run).steps:
        for said in seen.messages.input:
            for part in said.parts:
                if isinstance(part, ToolCallResponse) and (call := asked.pop(part.id or "", None)):
                    found[call.name].append(AnsweredCall(call.arguments, part.response))
        for said in seen.messages.output:
            for part in said.parts:
                if isinstance(part, ToolCall) and part.name not in marked:
                    asked[part.id or ""] = part
    return dict(found)


def _shown(name: str, arguments: Any) -> str:
    if isinstance(arguments, dict):
        fields = cast("dict[str, Any]", arguments)
        arguments = ", ".join(f"{one}={value!r}" for one, value in fields.items())
    return f"{name}({arguments})"
