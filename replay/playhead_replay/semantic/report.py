"""The report of a semantic replay: which span answered which request, and what had to be made up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from playhead_core.facts import Fidelity
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.rebuilding import rebuilt
from playhead_genai.rebuilding.calls import asked_in
from playhead_genai.rebuilding.matching import BY_ORDER, likeness
from playhead_genai.rebuilding.rendering import NotRebuilt
from playhead_replay.report.junit import Case, junit_suite
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.run import Run
from playhead_replay.semantic.calls_of_run import CallOfRun
from playhead_replay.semantic.tools_of_run import ToolOfRun
from playhead_semconv import attributes as a
from playhead_semconv import events as e

SemanticVerdict: TypeAlias = Literal["semantic", "diverged", "blocked"]
SEMANTIC_EXIT_CODES: dict[SemanticVerdict, int] = {"semantic": 0, "diverged": 1, "blocked": 3}


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request of the program that a span answered."""

    step: int
    """Step of the recorded run whose answer it got."""
    name: str
    """Name of that step's span."""
    matched_by: str
    """In what the request agrees with the recorded one."""
    differs: bool
    """Whether it asks for something else than the span says."""
    made_up: list[str]
    """Values that the answer needs and the span lacks."""
    left_out: list[str]
    """Values of the span that the answer does not contain."""
    seq: int = -1
    """Number of the request on the tape of the replay."""

    def __str__(self) -> str:
        said = f"step {self.step} {self.name}: matched by {self.matched_by}"
        if self.differs:
            said += ", although the messages differ"
        said += f"; made up: {', '.join(self.made_up)}" if self.made_up else ""
        return said + (f"; left out: {', '.join(self.left_out)}" if self.left_out else "")


@dataclass(slots=True)
class SemanticReport:
    """How a program ran whose model calls were answered from spans."""

    run: str
    answered: list[AnsweredRequest]
    """In the order of the requests."""
    refused: list[str]
    """Requests and effects that were refused, and why."""
    unused: list[str]
    """Calls of the run that answered no request."""
    not_rebuilt: list[str]
    """Calls of the run whose spans are incomplete, and what they lack."""
    tools: list[str]
    """Tool calls that a span answered, in their order, and what was made up around them."""
    tools_run: list[str]
    """Marked tools that ran for real, and why."""
    exit_status: int
    """Exit status of the program, negative for a signal."""
    failed_only_now: bool = False
    """Whether the program failed although the recorded run did not."""
    live: int = 0
    """Requests that were made for real, as allowed."""
    network: str = ""
    files: str = ""
    notes: list[str] = field(default_factory=list[str])

    @property
    def verdict(self) -> SemanticVerdict:
        """``semantic`` at best: bytes, times and chunks of the recorded answers are unknown."""
        if self.refused:
            return "blocked"
        differs = any(one.differs for one in self.answered)
        return "diverged" if differs or self.unused or self.failed_only_now else "semantic"

    @property
    def exit_code(self) -> int:
        """0 semantic, 1 diverged, 3 blocked."""
        return SEMANTIC_EXIT_CODES[self.verdict]

    def lines(self) -> Iterator[str]:
        """The report as lines of text."""
        made = "request" if len(self.answered) == 1 else "requests"
        yield f"{len(self.answered)} {made} answered from spans: the answers are rebuilt, not recorded"
        yield from (f"  {one}" for one in self.answered)
        yield from (f"answered from its span: {one}" for one in self.tools)
        yield from (f"ran for real: {one}" for one in self.tools_run)
        yield from (f"refused: {one}" for one in self.refused)
        yield from (f"not requested: {one}" for one in self.unused)
        yield from (f"not rebuilt: {one}" for one in self.not_rebuilt)
        if self.live:
            yield f"made for real, as you allowed: {self.live}"
        if self.exit_status:
            yield f"the program ended with status {self.exit_status}"
        if self.network:
            yield f"note: network blocked by the {self.network}, changes to files by the {self.files}"
        yield from (f"note: {note}" for note in self.notes)
        yield f"{self.verdict} (exit {self.exit_code})"

    def rebuilt_up_to(self, step: int | None) -> Iterator[str]:
        """How the requests up to a step (None: all) were answered, and which tools ran, as lines."""
        yield from (str(one) for one in self.answered if step is None or one.step <= step)
        yield from (f"ran for real: {one}" for one in self.tools_run)

    def to_json(self) -> dict[str, Any]:
        """As an object of plain values."""
        return {
            "schema_version": 1,
            "run": self.run,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "answered": [
                {
                    "step": one.step,
                    "name": one.name,
                    "matched_by": one.matched_by,
                    "differs": one.differs,
                    "made_up": one.made_up,
                    "left_out": one.left_out,
                }
                for one in self.answered
            ],
            "refused": self.refused,
            "unused": self.unused,
            "not_rebuilt": self.not_rebuilt,
            "tools": self.tools,
            "tools_run": self.tools_run,
            "live": self.live,
            "exit_status": self.exit_status,
            "network": self.network or None,
            "files": self.files or None,
            "notes": self.notes,
        }


def semantic_junit_xml(report: SemanticReport, command: str, time_s: float = 0.0) -> bytes:
    """The report as JUnit XML: a test case per call of a model, refused request, and the exit status.

    ``command``: the command that reproduces it. ``time_s``: duration of the replay.
    """
    properties = {"verdict": report.verdict, "network": report.network, "files": report.files}
    ended = f"the program ended with status {report.exit_status}, the recorded one did not fail"
    cases = [
        *(
            Case("steps", f"{one.step} {one.name}", [str(one)] if one.differs else [])
            for one in report.answered
        ),
        *(Case("steps", name, [f"not requested: {name}"]) for name in report.unused),
        *(Case("refused", said, [f"refused: {said}"], is_blocked=True) for said in report.refused),
        Case("outputs", "exit", [ended] if report.failed_only_now else []),
    ]
    known = {name: value for name, value in properties.items() if value}
    return junit_suite(report.run, known, cases, report.lines(), command, time_s)


def semantic_report(
    run: Run,
    calls: Sequence[CallOfRun],
    answering: Sequence[CallOfRun],
    tools: Sequence[ToolOfRun],
    now: IndexedTape,
) -> SemanticReport:
    """Return the report of the replay whose tape is ``now``.

    ``calls``: all of the run; ``answering`` and ``tools``: those on the tape that was made of them.
    """
    report = SemanticReport(run.name, [], [], [], [], [], [], 0)
    used: set[int] = set()
    made_up: list[str] = []
    for exchange in Run.of_tape(now).exchanges:
        said = exchange.exchange.ask.details
        fidelity = said.get(a.PLAYHEAD_FIDELITY)
        if fidelity == Fidelity.SEMANTIC:
            number = int(said[a.PLAYHEAD_ORIGIN_SEQ]) - 1  # the first fact is the start
            if number < 0:
                made_up.append(exchange.key)
            elif number < len(answering):
                used.add(number)
                report.answered.append(_answered(answering[number], exchange))
            else:
                report.tools.append(_tool(tools[number - len(answering)]))
        elif fidelity == Fidelity.BLOCKED:
            report.refused.append(_refused(exchange))
        elif fidelity == Fidelity.LIVE and exchange.id.kind == "tool":
            report.tools_run.append(f"{exchange.key}: {_why_run(exchange.key, tools)}")
        elif fidelity == Fidelity.LIVE:
            report.live += 1
    for fact in now.named(e.PLAYHEAD_EFFECT):
        if fact.attributes.get(a.PLAYHEAD_FIDELITY) == Fidelity.BLOCKED:
            kind, target = (fact.attributes.get(name, "") for name in _EFFECT)
            report.refused.append(f"{kind} {target}".strip())
    unused = (one for number, one in enumerate(answering) if number not in used)
    report.unused = [one.name for one in unused if not one.why_not]
    if made_up:
        report.notes.append(f"made up of a server of MCP: {', '.join(dict.fromkeys(made_up))}")
    report.not_rebuilt = [f"{one.name}: {one.why_not}" for one in calls if one.why_not]
    return report


_EFFECT = (a.PLAYHEAD_EFFECT_KIND, a.PLAYHEAD_EFFECT_TARGET)


def _answered(call: CallOfRun, now: RecordedExchange) -> AnsweredRequest:
    asked = asked_in(now.key, now.request)
    way, made_up, left_out = BY_ORDER, list[str](), list[str]()
    if asked is not None:
        wire, request = asked
        way = likeness(call.call.asked, request) or BY_ORDER
        try:
            made = rebuilt(wire, call.call.answer, now.request, now.key.partition(" ")[2])[1]
            made_up, left_out = made.made_up, made.left_out
        except NotRebuilt:  # it was, or it would not have answered
            pass
    differs = way == BY_ORDER and bool(call.call.asked.messages)
    number, name = call.step.number, call.step.span.name
    return AnsweredRequest(number, name, way, differs, made_up, left_out, now.first_seq)


def _tool(one: ToolOfRun) -> str:
    return f"step {one.step} {one.span.name}" if one.step else one.span.name


def _why_run(name: str, tools: Sequence[ToolOfRun]) -> str:
    if all(one.tool.name != name for one in tools):
        return "no span has its result"
    return "its spans have other arguments, or do not say of what type the result is"


def _refused(now: RecordedExchange) -> str:
    error = None if now.end is None else now.end.error
    said = "" if error is None else " ".join(error.message.split())
    return said or f"{now.id.kind} {now.key}"
