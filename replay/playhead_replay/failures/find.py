"""Find the failures of a run: from statuses, exceptions, finish reasons, results and schemas.

Each failure names its step and its evidence. A failure is *recovered* if the program got further: a
later attempt of the step, or a later step of the same kind and name, succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from playhead_core.errors import TapeError
from playhead_genai.messages import FinishReason, ToolCallResponse
from playhead_genai.readable_text import text_of
from playhead_genai.run_fields import decoded
from playhead_genai.tool_results import error_of
from playhead_replay.failures.codes import FailureType, code_of
from playhead_replay.failures.endings import (
    CANCELLED,
    ending_error,
    failures_at_end,
    is_error_of,
)
from playhead_replay.failures.failure import LONGEST_EVIDENCE, VERSION, FailingStep, Failure
from playhead_replay.failures.model_outputs import argument_problem, output_problem
from playhead_replay.failures.retrieval import is_empty, is_query, is_search, is_search_url
from playhead_replay.run.run import Run, once_per_run
from playhead_replay.run.steps import Step, is_request
from playhead_replay.timeline.tool_calls import ToolCallStep, tool_calls_of, unanswered_calls
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

__all__ = ["VERSION", "Failure", "failures_of", "status_reason"]

MOST_BODY_BYTES: Final = 1 << 16
"""Larger bodies of requests are not searched for a reason or for results."""

_FINISHES: Final = {
    FinishReason.LENGTH: "cut_off",
    FinishReason.CONTENT_FILTER: "content_filter",
    "malformed_function_call": "invalid_output",
    "unexpected_tool_call": "invalid_output",
}
_LAST_ANSWER: Final = {"cut_off": "cut off: length", "content_filter": "content filter"}
TOOL_ERROR: Final = "tool_error"
"""``error.type`` of a tool of MCP whose result is an error."""
_NOT_THERE: Final = (404, 410)
_NO_FIELD: Final = re.compile(r"(?:Error: |builtins\.)*(?:Attribute|Index|Key|Type)Error\b")


@once_per_run
def failures_of(run: Run) -> list[Failure]:
    """Return the failures of a run in order of steps."""
    return _Finder(run, tool_calls_of(run)).find()


def status_reason(run: Run, failures: Iterable[Failure]) -> str:
    """Return why a run that ended in order is not a plain success; empty if it is one.

    ``cut off: length`` or ``content filter``: the last answer of a model.
    """
    last = run.calls[-1].number if run.calls else None
    if run.status != "success":
        return ""
    found = (one for one in failures if one.step == last and one.source == "finish_reason")
    return next((_LAST_ANSWER.get(one.code, "") for one in found), "")


class _Finder:
    def __init__(self, run: Run, calls: Sequence[ToolCallStep]) -> None:
        self._run = run
        self._calls = calls
        self._found: list[tuple[tuple[int, int], Failure]] = []
        self._succeeded: dict[tuple[str, str], int] = {}
        """Last step that succeeded, by kind and name."""
        self._numbers = {step.span.span_id: step.number for step in run.steps}
        self._models = {step.number for step in run.calls}

    def find(self) -> list[Failure]:
        reported = {call.span.span_id: call for call in self._calls if call.span is not None}
        for step in self._run.steps:
            self._step(step, reported.get(step.span.span_id))
        for call in self._calls:
            self._call(call)
        for call in unanswered_calls(self._run, self._calls):
            self._arguments(call)
        error = ending_error(self._run)
        failed = (step for step in reversed(self._run.errors) if error and is_error_of(error, step))
        fatal = next((step.number for step in failed), None)
        found = [one for _, one in sorted(self._found, key=lambda pair: pair[0])]
        steps = [one if one.step == fatal else self._with_recovery(one) for one in found]
        of_end = failures_at_end(self._run, error, self._calls, steps)
        return [*steps, *self._checks(), *of_end]

    def _add(self, failure: Failure) -> None:
        order = failure.step or 0, int(failure.place.partition(".")[2] or 0)
        self._found.append((order, failure))

    def _step(self, step: Step, call: ToolCallStep | None) -> None:
        """Find failures in the span of a step. ``call``: the tool call of a model that it reports."""
        if step.span.pending:
            return
        number, at, is_model = step.number, step.span.attributes, step.number in self._models
        kind = _kind_of(step, call, is_model)
        name = _name_of(step, is_model) if call is None else call.name
        failing = FailingStep(kind, number, str(number), name)
        if step.span.failed:
            is_refusal = call is not None and argument_problem(call) != ""  # of such arguments
            if not (CANCELLED.search(step.span.error) or _may_be_missing(step) or is_refusal):
                said, status = self._reason(step)
                said += "" if call is None else f"\n{call.error}"
                told = _told_by_tool(step)
                said = f"{told}\n{said}" if told else said
                source = "status" if status is not None else "exception"
                failing = _as_query(failing, said, status)
                code = code_of(failing.type, said, status)
                if code == "api_error" and self._is_unusable(failing, step.span.error):
                    code = "invalid_response"
                self._add(failing.by(source, code, told or step.span.error or said))
            return
        if not step.span.operation:
            self._succeeded["url", step.span.url.geturl()] = number
        result = at.get(a.GEN_AI_TOOL_CALL_RESULT, at.get(a.GEN_AI_RETRIEVAL_DOCUMENTS))
        if call is None and kind != "model":
            if result is None and kind == "retrieval" and is_request(step.span):
                result = self._response(step)
            error = _error_in(result, name)
            self._result(failing, result, error)
        else:
            error = "" if call is None else call.error
        attempts = _failed_attempts(kind, step) if step.attempts and not error else {}
        for code, (evidence, times) in attempts.items():
            self._add(replace(failing.by("status", code, evidence), recovered=True, times=times))
        if kind != "model":
            return
        reasons = _reasons(at)
        for reason in reasons:
            self._add(failing.by("finish_reason", _FINISHES[reason], f"finish reason {reason}"))
        problem = "" if reasons else output_problem(self._run, step)
        if problem:
            self._add(failing.by("output", "invalid_output", problem))
        elif not reasons:
            self._succeeded[kind, name] = number

    def _arguments(self, call: ToolCallStep) -> bool:
        """Find what is wrong with the arguments of a call; return whether something is."""
        step = call.step.number
        problem = argument_problem(call)
        if problem:
            failing = FailingStep("model", step, call.number, call.name)
            self._add(failing.by("arguments", "invalid_output", problem))
        else:
            name = call.name if call.schema is not None else ""
            self._succeeded["arguments", name] = self._succeeded["arguments", ""] = step
        return bool(problem)

    def _call(self, call: ToolCallStep) -> None:
        """Find failures in a call that the messages report: its arguments and its result."""
        if self._arguments(call) and call.error:
            return  # the tool refused them, as it should
        if call.span is not None and call.span.failed:
            return
        kind: FailureType = "retrieval" if is_search(call.name) else "tool"
        own = None if call.span is None else self._numbers.get(call.span.span_id)
        failing = FailingStep(kind, own or call.step.number, str(own or call.number), call.name)
        if call.ended_ns is not None:
            self._result(failing, call.result, call.error)
        elif own is not None:  # the program ended before it sent the result
            # None: a result that is not recorded is no empty one.
            result = self._response(self._run.steps[own - 1]) or None
            self._result(failing, result, _error_in(result, call.name))

    def _result(self, failing: FailingStep, result: Any, error: str) -> None:
        if error:
            status = None
            if failing.place == str(failing.step):
                attempts = self._run.steps[failing.step - 1].attempts
                status = _status_of(attempts[-1:])
            failing = _as_query(failing, error, status)
            code = code_of(failing.type, error, status)
            if code == "api_error" and isinstance(result, dict):
                code = code_of(failing.type, text_of(cast("Any", result)), status)
            if code == "api_error" and self._is_unusable(failing, error):
                code = "invalid_response"
            self._add(failing.by("result", code, error))
        elif failing.type == "retrieval" and is_empty(result):
            self._add(failing.by("result", "no_results", f"empty result: {text_of(result)}"))
        else:
            for key in ((failing.type, failing.name), (failing.type, "")):
                self._succeeded[key] = max(failing.step, self._succeeded.get(key, 0))

    def _is_unusable(self, failing: FailingStep, error: str) -> bool:
        """Return whether a tool made a request and could not use the response: a field is missing."""
        is_call = failing.type == "tool" and failing.place == str(failing.step)
        if not is_call or not _NO_FIELD.match(error):
            return False
        span = self._run.steps[failing.step - 1].span
        return any(is_request(one) and not one.failed for one in (span, *span.children))

    def _reason(self, step: Step) -> tuple[str, int | None]:
        """Return what is known of the failure of a step, and the HTTP status of its last attempt."""
        span = step.span
        said = [span.error, text_of(span.attributes.get(a.ERROR_TYPE, ""))]
        said += [text_of(one.attributes.get(a.EXCEPTION_MESSAGE, "")) for one in span.events]
        status = _status_of([*step.attempts, span])
        if status is not None:
            said.append(self._response(step))
        return "\n".join(said), status

    def _response(self, step: Step) -> str:
        """Return what came back, as text; empty if it is not recorded or too long."""
        at, exchanges = step.span.attributes, self._run.exchanges_of(step)
        if a.GEN_AI_TOOL_CALL_RESULT in at:
            return text_of(at[a.GEN_AI_TOOL_CALL_RESULT])
        if not exchanges or sum(exchanges[-1].chunk_sizes) > MOST_BODY_BYTES:
            return ""
        try:
            return exchanges[-1].decoded_response.decode("utf-8", "replace")
        except TapeError:
            return ""

    def _with_recovery(self, one: Failure) -> Failure:
        kind, name = "arguments" if one.source == "arguments" else one.type, one.name
        if one.code == "no_results" or (kind == "arguments" and "not among the tools" in one.evidence):
            name = ""  # another search has found something, another tool was called
        later = self._succeeded.get((kind, name), 0)
        if one.source in ("status", "exception") and one.step is not None:
            url = self._run.steps[one.step - 1].span.url.geturl()
            later = max(later, self._succeeded.get(("url", url), 0) if url else 0)
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


def _kind_of(step: Step, call: ToolCallStep | None, is_model: bool) -> FailureType:
    if is_model:
        return "model"
    span = step.span
    name = str(span.attributes.get(a.GEN_AI_TOOL_NAME, "")) if call is None else call.name
    searches = is_search(name) or span.operation == Operation.RETRIEVAL
    is_bare = call is None and not span.operation
    return "retrieval" if searches or (is_bare and is_search_url(span.url)) else "tool"


def _as_query(failing: FailingStep, said: str, status: int | None) -> FailingStep:
    """Return a tool that takes queries as a retrieval if its query was refused."""
    if failing.type == "tool" and is_query(failing.name):
        if code_of("retrieval", said, status) == "invalid_query":
            return failing._replace(type="retrieval")
    return failing


def _name_of(step: Step, is_model: bool) -> str:
    """Return the name by which a later step is a repetition: of the tool, or of the operation."""
    span = step.span
    if is_model:
        return span.operation
    if name := str(span.attributes.get(a.GEN_AI_TOOL_NAME, "")):
        return name
    host = span.url.netloc
    return f"{span.name} {host}" if host else span.name


def _error_in(result: Any, tool: str) -> str:
    """Return why a tool failed, as its result says."""
    return "" if result is None else error_of(ToolCallResponse(response=result), tool)


def _told_by_tool(step: Step) -> str:
    """Return what a tool of MCP that says that it failed says about it; empty if it says nothing."""
    at = step.span.attributes
    if at.get(a.ERROR_TYPE) != TOOL_ERROR:
        return ""
    result = decoded(text_of(at.get(a.GEN_AI_TOOL_CALL_RESULT, "")))
    blocks = cast("Any", result).get("content") if isinstance(result, dict) else None
    if not isinstance(blocks, list):
        return ""
    found = [cast("dict[str, Any]", one) for one in cast("list[Any]", blocks) if isinstance(one, dict)]
    return "\n".join(one["text"] for one in found if isinstance(one.get("text"), str))


def _may_be_missing(step: Step) -> bool:
    """Return whether a request only asks whether something is there."""
    at = step.span.attributes
    return at.get(a.HTTP_REQUEST_METHOD) == "HEAD" and _status_of([step.span]) in _NOT_THERE


def _status_of(spans: Iterable[Any]) -> int | None:
    """Return the status of the last response, if it is an error."""
    statuses = [
        status
        for one in spans
        if isinstance(status := one.attributes.get(a.HTTP_RESPONSE_STATUS_CODE), int)
    ]
    return statuses[-1] if statuses and statuses[-1] >= 400 else None


def _reasons(at: dict[str, Any]) -> list[str]:
    """Return the finish reasons that are failures, once each.

    A request that allows one token asks for a choice or for a sign of life, and gets it.
    """
    reasons = at.get(a.GEN_AI_RESPONSE_FINISH_REASONS)
    if not isinstance(reasons, list):
        return []
    found = [str(one).lower() for one in cast("list[Any]", reasons)]
    failed = [reason for reason in found if reason in _FINISHES]
    if failed and at.get(a.GEN_AI_REQUEST_MAX_TOKENS) == 1:
        failed = [reason for reason in failed if reason != FinishReason.LENGTH]
    return list(dict.fromkeys(failed)) if failed else failed


def _failed_attempts(kind: FailureType, step: Step) -> dict[str, tuple[str, int]]:
    """Return the failed attempts of a step that succeeded: evidence and number, by code."""
    found: dict[str, tuple[str, int]] = {}
    for attempt in step.attempts:
        status = _status_of([attempt])
        if attempt is not step.span and attempt.failed and not CANCELLED.search(attempt.error):
            code = code_of(kind, attempt.error, status)
            said = f"{attempt.name} {status or attempt.error}"
            found[code] = (found.get(code, (said, 0))[0], found.get(code, (said, 0))[1] + 1)
    return found
