"""Which failure the exception is that ended an agent or the program.

Mostly it is what a failed step led to, and tells nothing new. Else it belongs to the last step, if it
says so (an answer that is no JSON, a tool that runs without a span), or to the program itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from playhead_core.errors import TapeError
from playhead_core.facts import ErrorRecord
from playhead_genai.readable_text import text_of
from playhead_genai.steps import FRAMES, Role
from playhead_replay.failures.codes import code_of, orchestration_code
from playhead_replay.failures.failure import LONGEST_EVIDENCE, FailingStep, Failure
from playhead_replay.failures.model_outputs import text_of_answer
from playhead_replay.failures.retrieval import is_search
from playhead_replay.run.outputs import Outputs
from playhead_replay.run.run import Run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step, role_of
from playhead_replay.timeline.tool_calls import ToolCallStep
from playhead_semconv import attributes as a

CANCELLED: Final = re.compile(r"\b(?:CancelledError|Cancelled|GeneratorExit|GraphInterrupt)\b")
SHORTEST_MESSAGE: Final = 8
"""Characters of a message by which an exception is that of a step."""
_OF_PERSON: Final = ("KeyboardInterrupt",)
_NO_JSON: Final = re.compile(r"JSONDecodeError|JSONError")
_NO_FORM: Final = re.compile(r"ValidationError|OutputParser|ParserError|ParseError")


def ending_error(run: Run) -> ErrorRecord | None:
    """Return the exception that ended the program, if it is one that a person did not cause."""
    ended = Outputs.exit_of(run.tapes[0]) if run.tapes else None
    error = None if ended is None else ended.error
    return None if error is None or error.qualname in _OF_PERSON else error


def is_error_of(error: ErrorRecord, step: Step) -> bool:
    """Return whether an exception is that with which a step failed."""
    span = step.span
    types = (text_of(event.attributes.get(a.EXCEPTION_TYPE, "")) for event in span.events)
    names = " ".join([span.error, text_of(span.attributes.get(a.ERROR_TYPE, "")), *types])
    if error.qualname in names:
        return True
    status = span.attributes.get(a.HTTP_RESPONSE_STATUS_CODE)
    if isinstance(status, int) and status >= 400 and re.search(rf"\b{status}\b", error.message):
        return True
    message = span.status_message.strip()
    return len(message) >= SHORTEST_MESSAGE and message in error.message


def failures_at_end(
    run: Run, error: ErrorRecord | None, calls: Sequence[ToolCallStep], found: Sequence[Failure]
) -> Iterator[Failure]:
    """Yield what `error` and failed agents tell beyond ``found``, the failures of steps."""
    frames = list(_failed_frames(run))
    if error is None:
        yield from frames
        return
    of_step = None if error.qualname == "SystemExit" else _of_last_step(run, error, calls)
    if of_step is not None and all(one.step != of_step.step for one in found if not one.recovered):
        yield of_step
        return
    fatal = {one.step for one in found if not one.recovered}
    raising = {one.step for one in found if not one.recovered and one.code != "no_results"}
    end = _orchestration(f"{error.qualname}: {error.message}", error.qualname)
    if any(is_error_of(error, step) and step.number in fatal for step in run.errors):
        return
    specific = [one for one in frames if one.code != "uncaught_exception"]
    if specific:
        yield from specific
    elif end.code != "uncaught_exception":
        yield end
    elif error.qualname != "SystemExit" and not (run.steps and run.steps[-1].number in raising):
        yield frames[0] if frames else end


def _of_last_step(run: Run, error: ErrorRecord, calls: Sequence[ToolCallStep]) -> Failure | None:
    """Return the failure of the last step that an exception shows although the step did not fail."""
    said = f"{error.error_type}: {error.message}"
    last = run.steps[-1] if run.steps else None
    if last is None:
        return None
    is_model = role_of(last.span) >= Role.CALL
    failing = FailingStep("model" if is_model else "tool", last.number, str(last.number), last.span.name)
    if last.span.failed:
        if CANCELLED.search(last.span.error) and error.qualname == "TimeoutError":
            return failing.by("exception", "timeout", said)
        return None
    pending = [one for one in calls if one.ended_ns is None and one.step is last and one.span is None]
    if pending:
        name = pending[0].name
        kind = "retrieval" if is_search(name) else "tool"
        code = code_of(kind, said)
        place = FailingStep(kind, last.number, pending[0].number, name)
        return None if code == "api_error" else place.by("exception", code, said)
    no_json, no_form = _NO_JSON.search(error.qualname), _NO_FORM.search(error.qualname)
    if is_model and (no_json or no_form):
        text = text_of_answer(run, last)
        if text and (no_form or not _is_json(text)):
            return failing.by("exception", "invalid_output", said)
    elif no_json and role_of(last.span) == Role.REQUEST:
        exchanges = run.exchanges_of(last)
        try:
            body = exchanges[-1].decoded_response.decode("utf-8", "replace") if exchanges else "{}"
        except TapeError:
            return None
        return None if _is_json(body) else failing.by("exception", "invalid_response", said)
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _failed_frames(run: Run) -> Iterator[Failure]:
    """Yield failed agents, workflows and served requests in which nothing else failed."""
    failed_below: set[str] = set()
    for span in reversed(run.spans):
        below = span.children
        if below and any(child.span_id in failed_below or child.status == "error" for child in below):
            failed_below.add(span.span_id)
        elif span.status == "error" and _is_frame(span) and not CANCELLED.search(span.error):
            yield _orchestration(span.error, span.name)


def _is_frame(span: Span) -> bool:
    return span.operation in FRAMES or role_of(span) == Role.SERVED


def _orchestration(said: str, name: str) -> Failure:
    evidence = " ".join(said.split())[:LONGEST_EVIDENCE]
    return Failure("orchestration", orchestration_code(said), None, "", name, "exception", evidence)
