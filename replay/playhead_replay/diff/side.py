"""One of the compared runs: its steps with their requests and responses."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from playhead_core.errors import TapeError
from playhead_core.facts import digest_of
from playhead_core.reports import ProgramReport
from playhead_genai.messages import InputMessage, OutputMessage, Part, ToolCall, plain
from playhead_genai.providers import decode_body
from playhead_genai.rebuilding.calls import asked
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.messages import Messages, derived_attributes, messages_of
from playhead_replay.run.run import Run
from playhead_replay.run.states import State
from playhead_replay.run.steps import Step
from playhead_semconv import attributes as a

_COUNTERS = re.compile(r"\.\d+(?=/|\Z)")


@dataclass(eq=False)
class ComparedStep:
    """A step in the form in which it is compared."""

    step: Step
    exchanges: list[RecordedExchange] = field(default_factory=list[RecordedExchange])
    said: list[State] = field(default_factory=list[State])
    """States reported between its start and the next step; for the first step, also those before it."""
    reported: list[ProgramReport] = field(default_factory=list[ProgramReport])
    """Reports about itself that the program made at the same time."""
    by_spans: bool = False
    """Whether requests and responses are compared by what spans say: one of the runs has no tape."""

    @property
    def number(self) -> int:
        """Step number, as `playhead show` prints it."""
        return self.step.number

    @cached_property
    def label(self) -> str:
        """Kind of step, without anything that may be edited: ``chat``, ``execute_tool search``."""
        span = self.step.span
        if span.operation:
            tool = span.attributes.get(a.GEN_AI_TOOL_NAME)
            return f"{span.operation} {tool}" if tool else span.operation
        return f"{span.name} {span.url.path}".strip()

    @property
    def lane(self) -> str:
        """Name of the lane that made the request; empty if the tape does not say."""
        return self.exchanges[-1].lane_name if self.exchanges else ""

    @property
    def family(self) -> str:
        """The lane name without counters: all tasks of one function that were started from one place."""
        return _COUNTERS.sub("", self.lane)

    @cached_property
    def request(self) -> bytes:
        """The body of the last attempt; else the model and the messages, or the arguments of a tool."""
        if not self.exchanges or self.by_spans:
            return self._told()
        try:
            return self.exchanges[-1].request
        except TapeError:
            return b""

    @cached_property
    def response(self) -> bytes:
        """The decoded body of the last answer; for a tool without requests, its result."""
        if not self.exchanges or self.by_spans:
            return _json(self.step.span.attributes.get(a.GEN_AI_TOOL_CALL_RESULT, ""))
        last = self.exchanges[-1]
        try:
            return decode_body(last.response_headers, [last.response])[0]
        except TapeError:
            return b""

    @property
    def key(self) -> str:
        """Method and URL; the label if there was no request."""
        return self.label if not self.exchanges or self.by_spans else self.exchanges[-1].key

    @cached_property
    def asked(self) -> bytes:
        """Digest of the complete request: equal for equal requests."""
        return digest_of(f"{self.label}\n{self.key}\n".encode() + self.request)

    @cached_property
    def news(self) -> bytes:
        """Digest of the end of a request: its last message, if it has messages."""
        try:
            body: Any = json.loads(self.request or b"null")
        except (ValueError, RecursionError):
            return digest_of(self.request)
        if isinstance(body, dict):
            fields = cast("dict[str, Any]", body)
            said = fields.get("messages") or fields.get("input") or fields.get("contents")
            if isinstance(said, list) and said:
                return digest_of(_json(said[-1]))
        return digest_of(_json(body))

    def _told(self) -> bytes:
        """The request as its span says it."""
        at, told = self.step.span.attributes, self.messages
        if not (told.input or told.system):
            return _json(at.get(a.GEN_AI_TOOL_CALL_ARGUMENTS, ""))
        model = str(at.get(a.GEN_AI_REQUEST_MODEL) or at.get(a.GEN_AI_RESPONSE_MODEL) or "")
        return _json({"model": model, "messages": _turns(told.system, told.input)})

    @cached_property
    def messages(self) -> Messages:
        """Input and output messages of the call."""
        return messages_of(self.step.span.attributes, self.exchanges)

    @property
    def output(self) -> list[Any]:
        """The output messages as plain values; empty if it is not a call to a model."""
        if self.by_spans:
            return _turns([], self.messages.output)
        return [plain(message) for message in self.messages.output]

    @cached_property
    def finish(self) -> dict[str, Any]:
        """The finish reason and the model that answered."""
        derived = (
            derived_attributes(self.step.span.attributes, self.exchanges[-1]) if self.exchanges else {}
        )
        found = {**derived, **self.step.span.attributes}
        names = (a.GEN_AI_RESPONSE_FINISH_REASONS, a.GEN_AI_RESPONSE_MODEL)
        return {name.rpartition(".")[2]: found[name] for name in names if name in found}

    @cached_property
    def states(self) -> dict[str, Any]:
        """The last value of each state of the program, as plain values."""
        found: dict[str, Any] = {}
        for one in self.said:
            try:
                found[one.name] = one.value
            except (TapeError, ValueError, RecursionError):
                continue
        return found

    @cached_property
    def reports(self) -> dict[str, Any]:
        """The reports of the program in this step by kind and number: ``decision 1``."""
        counts = Counter[str]()
        found: dict[str, Any] = {}
        for one in self.reported:
            counts[one.kind] += 1
            found[f"{one.kind} {counts[one.kind]}"] = one.fields
        return found

    @property
    def tools(self) -> list[str]:
        """Names of the tools that the model requested, in order."""
        return [
            part.name
            for message in self.messages.output
            for part in message.parts
            if isinstance(part, ToolCall)
        ]


class Side:
    """A run that is compared."""

    def __init__(self, run: Run, *, by_spans: bool = False) -> None:
        """``by_spans``: see `ComparedStep`."""
        self.run = run
        own: dict[str, list[RecordedExchange]] = defaultdict(list)
        for exchange in run.exchanges:
            own[exchange.span_id].append(exchange)
        said: dict[int, list[State]] = defaultdict(list)
        for state in run.states:
            said[max(state.step, 1)].append(state)
        reported: dict[int, list[ProgramReport]] = defaultdict(list)
        for report in run.reports:
            reported[max(report.step or 0, 1)].append(report)
        self.steps = [
            ComparedStep(
                step,
                [
                    exchange
                    for span_id in dict.fromkeys(
                        (step.span.span_id, *(span.span_id for span in step.attempts))
                    )
                    for exchange in own.get(span_id, ())
                ],
                said[step.number],
                reported[step.number],
                by_spans,
            )
            for step in run.steps
        ]

    @cached_property
    def tools(self) -> list[str]:
        """The tools that models requested, in order; if there are none, those that were executed."""
        asked = [name for seen in self.steps for name in seen.tools]
        return asked or [
            str(seen.step.span.attributes[a.GEN_AI_TOOL_NAME])
            for seen in self.steps
            if a.GEN_AI_TOOL_NAME in seen.step.span.attributes
        ]

    @property
    def path(self) -> list[str]:
        """The flow of the run: labels of the steps; model calls include the requested tools."""
        return [" ".join([seen.label, *(f"→{name}" for name in seen.tools)]) for seen in self.steps]


def _turns(system: Sequence[Part], messages: Sequence[InputMessage | OutputMessage]) -> list[Any]:
    """Messages in a form in which all conventions say the same alike."""
    turns = asked("", "", system, messages, []).messages
    return [{"role": role, "content": parts} for role, parts in json.loads(turns or "[]")]


def _json(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr).encode()
