"""What a run did, as tests and conditions ask for it: tools, messages, tokens, output, answers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from playhead_core.reports import ProgramReport
from playhead_core.untrusted.spans import count_in
from playhead_genai.messages import Text, ToolCall
from playhead_genai.prices import Cost, cost_of
from playhead_replay.diff.side import Side
from playhead_replay.run.inbound_requests import InboundRequest
from playhead_replay.run.messages import Messages, derived_attributes
from playhead_replay.run.outputs import Outputs
from playhead_replay.run.run import Run
from playhead_replay.run.steps import Step
from playhead_semconv import attributes as a


class NotSaid(LookupError):
    """The program has not reported such a state."""


class ObservedRun:
    """A run that is looked at."""

    def __init__(self, run: Run, *, priced_at_ns: int | None = None) -> None:
        """``priced_at_ns``: the day whose prices count; by default that of the run."""
        self.run = run
        self._priced_at_ns = run.started_ns if priced_at_ns is None else priced_at_ns
        self._side = Side(run)

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

    @property
    def usd(self) -> Decimal | None:
        """Cost in US dollars; None if a model has no known price."""
        cost = self.cost
        return None if cost.unpriced else cost.usd

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of tools that models requested, in order."""
        said = [message for one in self.messages for message in one.output]
        return [part for message in said for part in message.parts if isinstance(part, ToolCall)]

    @property
    def answer(self) -> str:
        """What a model said last, as text; empty if none said anything."""
        for one in reversed(self.messages):
            texts = [
                part.content for said in one.output for part in said.parts if isinstance(part, Text)
            ]
            if texts:
                return "".join(texts)
        return ""

    @property
    def decisions(self) -> list[ProgramReport]:
        """The decisions that the program reported, in order."""
        return [one for one in self.run.reports if one.kind == "decision"]

    @property
    def signals(self) -> list[ProgramReport]:
        """The signals that the program reported, in order."""
        return [one for one in self.run.reports if one.kind == "signal"]

    @property
    def phases(self) -> list[str]:
        """The phases that the program entered, in order."""
        found = (one.text("name") for one in self.run.reports if one.kind == "phase")
        return [name for name in found if name]

    @property
    def requests(self) -> list[InboundRequest]:
        """The requests that the program received, with its answers."""
        return self.run.requests

    @property
    def printed(self) -> str:
        """Its output on stdout."""
        return Outputs.of_tape(self.run.tape).stdout.data.decode(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process; None if it did not end regularly."""
        ended = Outputs.exit_of(self.run.tape)
        return None if ended is None else ended.code

    @property
    def status(self) -> str:
        """``success`` or ``failure``; of a service, whether its requests were served."""
        requests = self.requests
        failed = any(one.failed for one in requests) if requests else self.exit_code != 0
        return "failure" if failed else "success"

    def state(self, step: int, name: str = "") -> Any:
        """The last state that the program reported up to the end of a step, as plain values.

        ``name``: of the state; by default any. `NotSaid` if none was reported.
        """
        said = [one for one in self.run.states if one.step <= step and name in ("", one.name)]
        if not said:
            raise NotSaid(f"no state was reported up to step {step}")
        return said[-1].value

    def _calls(self) -> Iterator[tuple[dict[str, Any], int]]:
        for seen in self._side.steps:
            if seen.exchanges:
                span = seen.step.span
                derived = derived_attributes(span.attributes, seen.exchanges[-1])
                yield {**span.attributes, **derived}, self._priced_at_ns
