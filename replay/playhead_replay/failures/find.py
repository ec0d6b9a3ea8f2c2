"""Find the failures of a run: from statuses, exceptions, finish reasons, results and schemas.

Each failure names its step and its evidence. A failure is *recovered* if the program got further: a
later attempt of the step, or a later step of the same kind and name, succeeded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast

from playhead_core.errors import TapeError
from playhead_genai.messages import FinishReason, Text, ToolCallResponse
from playhead_genai.readable_text import named_arguments, text_of
from playhead_genai.steps import FRAMES, Role
from playhead_genai.tool_results import error_of
from playhead_replay.failures.codes import FailureType, code_of, orchestration_code
from playhead_replay.failures.schemas import problem_with
from playhead_replay.run.outputs import Outputs
from playhead_replay.run.run import Run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step, role_of
from playhead_replay.timeline.tool_calls import ToolCallStep
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation
from playhead_semconv.values import GenAiOutputType

VERSION: Final = 1
"""Changes with the rules below: failures that were derived with another version may differ."""

Source: TypeAlias = Literal[
    "status", "exception", "finish_reason", "result", "arguments", "output", "check"
]
"""What a failure was derived from."""

LONGEST_EVIDENCE: Final = 300
"""Characters of the text that shows a failure."""
MOST_BODY_BYTES: Final = 1 << 16
"""Larger bodies of failed requests are not searched for the reason."""

_RETRIEVES: Final = re.compile(
    r"(?:^|[^a-z])(?:search|retriev\w*|lookup|rag|knowledge|similarity)", re.I
)
"""Names of tools that search: an empty result of another tool may be what it should be."""
_NOTHING: Final = frozenset(("no results", "no results found", "nothing found", "no matches"))
_ECHOES: Final = frozenset(
    ("query", "q", "question", "search", "term", "ok", "success", "status", "took")
)
"""Fields of a result that repeat the query, or that say how the search went."""
_CANCELLED: Final = re.compile(r"\b(?:CancelledError|Cancelled|GeneratorExit|GraphInterrupt)\b")
_FINISHES: Final = {FinishReason.LENGTH: "cut_off", FinishReason.CONTENT_FILTER: "content_filter"}
_LAST_ANSWER: Final = {"cut_off": "cut off: length", "content_filter": "content filter"}


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of a step, or of the whole run."""

    type: FailureType
    code: str
    """One of `codes.CODES`."""
    step: int | None
    """None: it belongs to the run and no step."""
    place: str
    """``3``; ``3.1`` for a tool call that only the messages report; empty without a step."""
    name: str
    """Of the model, the tool or the exception."""
    source: Source
    evidence: str
    recovered: bool = False
    times: int = 1
    """Attempts that failed in this way."""

    def to_json(self) -> dict[str, Any]:
        """Return it as an object of plain values."""
        return {
            "type": self.type,
            "code": self.code,
            "step": self.step,
            "place": self.place or None,
            "name": self.name,
            "source": self.source,
            "evidence": self.evidence,
            "recovered": self.recovered,
            "times": self.times,
            "derived": True,
            "version": VERSION,
        }


def failures_of(run: Run, calls: Sequence[ToolCallStep]) -> list[Failure]:
    """Return the failures of a run in order of steps. ``calls``: its tool calls (`tool_calls_of`)."""
    finder = _Finder(run, calls)
    return finder.find()


def status_reason(run: Run, failures: Iterable[Failure]) -> str:
    """Return why a run that ended in order is not a plain success; empty if it is one.

    ``cut off: length`` or ``content filter``: the last answer of a model.
    """
    last = run.calls[-1].number if run.calls else None
    if run.status != "success":
        return ""
    found = (one for one in failures if one.step == last and one.source == "finish_reason")
    return next((_LAST_ANSWER[one.code] for one in found), "")


class _Finder:
    def __init__(self, run: Run, calls: Sequence[ToolCallStep]) -> None:
        self._run = run
        self._calls = calls
        self._found: list[tuple[tuple[int, int], Failure]] = []
        self._succeeded: dict[tuple[str, str], int] = {}
        """Last step that succeeded, by kind and name."""
        self._numbers = {step.span.span_id: step.number for step in run.steps}

    def find(self) -> list[Failure]:
        reported = {call.span.span_id: call for call in self._calls if call.span is not None}
        for step in self._run.steps:
            self._step(step, reported.get(step.span.span_id))
        for call in self._calls:
            self._call(call)
        found = [one for _, one in sorted(self._found, key=lambda pair: pair[0])]
        steps = [self._with_recovery(one) for one in found]
        return [*steps, *self._checks(), *self._frames(), *self._end(steps)]

    def _add(self, failure: Failure) -> None:
        evidence = " ".join(failure.evidence.split())[:LONGEST_EVIDENCE]
        order = failure.step or 0, int(failure.place.partition(".")[2] or 0)
        self._found.append((order, replace(failure, evidence=evidence)))

    def _step(self, step: Step, call: ToolCallStep | None) -> None:
        """Find failures in the span of a step. ``call``: the tool call of a model that it reports."""
        kind, name = _kind_of(step, call), _name_of(step) if call is None else call.name
        number, at = step.number, step.span.attributes
        failure = Failure(kind, "", number, str(number), name, "status", "")
        if step.span.pending:
            return
        if step.span.failed:
            if not _CANCELLED.search(step.span.error):
                said, status = self._reason(step)
                source: Source = "status" if status is not None else "exception"
                code = code_of(kind, said, status)
                self._add(replace(failure, code=code, source=source, evidence=step.span.error or said))
            return
        for code, (evidence, times) in _failed_attempts(kind, step).items():
            self._add(replace(failure, code=code, evidence=evidence, recovered=True, times=times))
        if kind == "model":
            reasons = [reason for reason in _reasons(at) if reason in _FINISHES]
            for reason in reasons:
                evidence = f"finish reason {reason}"
                code = _FINISHES[reason]
                self._add(replace(failure, code=code, source="finish_reason", evidence=evidence))
            problem = "" if reasons else self._output_problem(step)
            if problem:
                self._add(replace(failure, code="invalid_output", source="output", evidence=problem))
            elif not reasons:
                self._succeeded[kind, name] = number
        elif call is None:
            result = at.get(a.GEN_AI_TOOL_CALL_RESULT, at.get(a.GEN_AI_RETRIEVAL_DOCUMENTS))
            self._result(replace(failure, source="result"), result, "")

    def _call(self, call: ToolCallStep) -> None:
        """Find failures in a call that the messages report: its arguments and its result."""
        step, place = call.step.number, call.number
        if problem := _argument_problem(call):
            self._add(Failure("model", "invalid_output", step, place, call.name, "arguments", problem))
        else:
            self._succeeded["arguments", call.name] = step
        if call.span is not None and call.span.failed:
            return
        kind: FailureType = "retrieval" if _RETRIEVES.search(call.name) else "tool"
        own = None if call.span is None else self._numbers.get(call.span.span_id)
        failure = Failure(kind, "", own or step, str(own or place), call.name, "result", "")
        if call.ended_ns is not None:
            self._result(failure, call.result, call.error)
        elif own is not None:  # the program ended before it sent the result
            self._result(failure, self._response(self._run.steps[own - 1]), "")

    def _result(self, failure: Failure, result: Any, error: str) -> None:
        said = error or ("" if result is None else error_of(ToolCallResponse(response=result)))
        if said:
            self._add(replace(failure, code=code_of(failure.type, said), evidence=said))
        elif failure.type == "retrieval" and _is_empty(result):
            evidence = f"empty result: {text_of(result)}"
            self._add(replace(failure, code="no_results", evidence=evidence))
        else:
            key = failure.type, failure.name
            self._succeeded[key] = max(failure.step or 0, self._succeeded.get(key, 0))

    def _reason(self, step: Step) -> tuple[str, int | None]:
        """Return what is known of the failure of a step, and the HTTP status of its last attempt."""
        span = step.span
        said = [span.error, text_of(span.attributes.get(a.ERROR_TYPE, ""))]
        said += [text_of(one.attributes.get(a.EXCEPTION_MESSAGE, "")) for one in span.events]
        statuses = [
            status
            for one in (*step.attempts, span)
            if isinstance(status := one.attributes.get(a.HTTP_RESPONSE_STATUS_CODE), int)
        ]
        status = statuses[-1] if statuses and statuses[-1] >= 400 else None
        if status is not None:
            said.append(self._response(step))
        return "\n".join(said), status

    def _response(self, step: Step) -> str:
        """Return the result of a step, else the body of its last attempt if it is small."""
        at, exchanges = step.span.attributes, self._run.exchanges_of(step)
        if a.GEN_AI_TOOL_CALL_RESULT in at:
            return text_of(at[a.GEN_AI_TOOL_CALL_RESULT])
        if not exchanges or sum(exchanges[-1].chunk_sizes) > MOST_BODY_BYTES:
            return ""
        try:
            return exchanges[-1].response.decode("utf-8", "replace")
        except TapeError:
            return ""

    def _output_problem(self, step: Step) -> str:
        """Return in what a structured output does not fit the schema that the request asks for."""
        at = step.span.attributes
        if at.get(a.GEN_AI_OUTPUT_TYPE) != GenAiOutputType.JSON:
            return ""
        messages = self._run.messages(step)
        parts = [part for message in messages.output for part in message.parts]
        said = "".join(part.content for part in parts if isinstance(part, Text))
        if not said or any(not isinstance(part, Text) for part in parts):
            return ""
        try:
            value = json.loads(said)
        except (ValueError, RecursionError) as problem:
            return f"the output is not JSON: {problem}"
        exchanges = self._run.exchanges_of(step)
        try:
            schema = _output_schema(exchanges[-1].request) if exchanges else None
        except TapeError:
            schema = None
        problem = "" if schema is None else problem_with(schema, value)
        return f"the output does not fit its schema: {problem}" if problem else ""

    def _with_recovery(self, one: Failure) -> Failure:
        kind = "arguments" if one.source == "arguments" else one.type
        later = self._succeeded.get((kind, one.name), 0)
        return replace(one, recovered=one.recovered or later > (one.step or 0))

    def _checks(self) -> Iterator[Failure]:
        for one in self._run.failed_checks:
            place = "" if one.step is None else str(one.step)
            yield Failure(
                "orchestration",
                "constraint_violation",
                one.step,
                place,
                one.name,
                "check",
                one.said[:LONGEST_EVIDENCE],
            )

    def _frames(self) -> Iterator[Failure]:
        """Yield failed agents and workflows in which nothing else failed."""
        failed_below: set[str] = set()
        for span in reversed(self._run.spans):
            if any(child.span_id in failed_below or child.failed for child in span.children):
                failed_below.add(span.span_id)
            elif span.failed and span.operation in FRAMES and not _CANCELLED.search(span.error):
                yield self._orchestration(span.error, span.name)

    def _end(self, found: Sequence[Failure]) -> Iterator[Failure]:
        """Yield the exception that ended the program, unless the last step failed with it."""
        ended = Outputs.exit_of(self._run.tapes[0]) if self._run.tapes else None
        if ended is None or ended.error is None or ended.error.qualname == "SystemExit":
            return
        said = f"{ended.error.qualname}: {ended.error.message}"
        last = self._run.errors[-1:]
        of_step = last and last[0].number in {one.step for one in found if not one.recovered}
        if not (of_step and ended.error.qualname in _names_of(last[0].span)):
            yield self._orchestration(said, ended.error.qualname)

    def _orchestration(self, said: str, name: str) -> Failure:
        evidence = " ".join(said.split())[:LONGEST_EVIDENCE]
        code = orchestration_code(said.partition(":")[0] or said)
        return Failure("orchestration", code, None, "", name, "exception", evidence)


def _kind_of(step: Step, call: ToolCallStep | None) -> FailureType:
    operation = step.span.operation
    if role_of(step.span) >= Role.CALL:
        return "model"
    name = str(step.span.attributes.get(a.GEN_AI_TOOL_NAME, "")) if call is None else call.name
    is_retrieval = operation == Operation.RETRIEVAL or bool(name and _RETRIEVES.search(name))
    return "retrieval" if is_retrieval else "tool"


def _name_of(step: Step) -> str:
    """Return the name by which a later step is a repetition: of the tool, or of the operation."""
    at, span = step.span.attributes, step.span
    if role_of(span) >= Role.CALL:
        return span.operation
    host = span.url.netloc
    return str(at.get(a.GEN_AI_TOOL_NAME, "")) or (f"{span.name} {host}" if host else span.name)


def _names_of(span: Span) -> str:
    types = (text_of(event.attributes.get(a.EXCEPTION_TYPE, "")) for event in span.events)
    return " ".join([span.error, text_of(span.attributes.get(a.ERROR_TYPE, "")), *types])


def _reasons(at: dict[str, Any]) -> list[str]:
    reasons = at.get(a.GEN_AI_RESPONSE_FINISH_REASONS)
    return list(dict.fromkeys(map(str, cast("list[Any]", reasons)))) if isinstance(reasons, list) else []


def _failed_attempts(kind: FailureType, step: Step) -> dict[str, tuple[str, int]]:
    """Return the failed attempts of a step that succeeded: evidence and number, by code."""
    found: dict[str, tuple[str, int]] = {}
    for attempt in step.attempts:
        status = attempt.attributes.get(a.HTTP_RESPONSE_STATUS_CODE)
        status = status if isinstance(status, int) and status >= 400 else None
        if attempt is not step.span and attempt.failed and not _CANCELLED.search(attempt.error):
            code = code_of(kind, attempt.error, status)
            said = f"{attempt.name} {status or attempt.error}"
            found[code] = (found.get(code, (said, 0))[0], found.get(code, (said, 0))[1] + 1)
    return found


def _argument_problem(call: ToolCallStep) -> str:
    """Return what is wrong with the arguments of a call."""
    if not call.is_offered:
        return f"{call.name} is not among the tools that the request offers"
    arguments = call.arguments
    if isinstance(arguments, str):
        if not arguments.strip() or call.schema is None:
            return ""
        named = named_arguments(arguments)
        if named is None:
            return f"the arguments are not a JSON object: {arguments}"
        arguments = named
    if call.schema is None or arguments is None:
        return ""
    problem = problem_with(call.schema, arguments)
    return f"the arguments do not fit the schema of {call.name}: {problem}" if problem else ""


def _is_empty(value: Any) -> bool:
    """Return whether a result has nothing in it: an empty list, or an object of empty lists alone.

    >>> _is_empty([]), _is_empty('{"docs": [], "count": 0}'), _is_empty({"ok": True}), _is_empty(None)
    (True, True, False, False)
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value.strip().lower().rstrip(".") in _NOTHING
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if len(items) == 1 and isinstance(items[0], dict) and "text" in items[0]:
            return _is_empty(cast("dict[str, Any]", items[0])["text"])
        return not items
    if not isinstance(value, dict):
        return False
    fields = {name: one for name, one in cast("dict[str, Any]", value).items() if name not in _ECHOES}
    return any(isinstance(one, list) for one in fields.values()) and not any(fields.values())


def _output_schema(request: bytes) -> Any:
    """Return the JSON schema that a request asks its output to fit; None if it has none."""
    try:
        body = json.loads(request)
    except (ValueError, RecursionError):
        return None
    places = (
        ("response_format", "json_schema", "schema"),
        ("text", "format", "schema"),
        ("output_config", "format", "schema"),
        ("output_format", "schema"),
        ("generationConfig", "responseJsonSchema"),
        ("format",),
    )
    for place in places:
        value: Any = body
        for name in place:
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if isinstance(value, dict):
            return cast("Any", value)
    return None
