"""One step: its messages and response, then usage, cost and time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from playhead_cli.output.message_text import body_text
from playhead_cli.output.report_text import decision_lines, step_reports
from playhead_cli.output.step.bodies import body_lines, text_lines
from playhead_cli.output.step.conversation import (
    ANSWERED,
    ASKED,
    answered_lines,
    asked_lines,
    call_lines,
)
from playhead_cli.output.step.log_text import log_text
from playhead_cli.output.step.score_text import score_lines
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, TITLE
from playhead_cli.output.words import AGAIN, FOLD, clock, count, label, one_line, seconds, took
from playhead_core.errors import TapeError
from playhead_genai.messages import FinishReason
from playhead_genai.prices import cost_of
from playhead_genai.providers.encodings import decode_body
from playhead_genai.providers.encodings import header as header_in
from playhead_genai.readable_text import OF_CONVENTIONS, text_of
from playhead_genai.scores import READ_EVENTS
from playhead_replay.decisions import decisions_of
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_replay import RecordedExchange, Run, Span, Step
    from playhead_replay.run.messages import Messages
    from playhead_replay.run.spans import SpanEvent

MOST_LOGS = 20
"""Log records of a step that are shown without ``--all``."""

EXPECTED = (FinishReason.STOP, FinishReason.TOOL_CALL)
"""Reasons for the end of an answer that need no mention."""


def step_lines(run: Run, step: Step, messages: Messages, everything: bool = False) -> Iterator[Text]:
    """Yield the conversation of a step, and its figures. ``everything``: nothing is folded."""
    span, exchanges = step.span, run.exchanges_of(step)
    yield heading(run, step)
    yield from _content(step, messages, exchanges, everything)
    yield from _failures(span, everything)
    for state in run.states:
        if state.step == step.number:
            yield Text()
            yield Text(state.name, TITLE)
            yield from text_lines(json.dumps(state.value) if state.has_content else "", "", everything)
    if reports := [one for one in run.reports if one.step == step.number]:
        yield Text()
        yield from step_reports(reports)
    decisions = decisions_of(run) if everything else ()
    if derived := [one for one in decisions if one.step == step.number and one.derived and one.actions]:
        yield Text()
        yield from decision_lines(derived)
    if scores := run.scores_of(step):
        yield Text()
        yield from score_lines(scores, everything)
    yield from _logs(run, step, everything)
    told = {
        name: value for name, value in span.attributes.items() if not name.startswith(OF_CONVENTIONS)
    }
    if told:
        yield Text()
        yield from attribute_lines(told)
    yield Text()
    yield Text(_figures(run, step), FAINT)


def heading(run: Run, step: Step) -> Text:
    """``refund-7:3 chat gpt-5.5``, and its error."""
    head = Text(f"{run.name}:{step.number} ", style=NUMBER)
    head.append(label(step.span), style=TITLE)
    if step.span.failed:
        head.append(f"  {step.span.error}", style=ERROR)
    return head


def attribute_lines(attributes: dict[str, Any]) -> Iterator[Text]:
    """Yield attributes by name, a line each."""
    for name, value in sorted(attributes.items()):
        line = Text(f"  {name}: ", FAINT)
        line.append(text_of(value), style="")
        yield line


def _content(
    step: Step, messages: Messages, exchanges: Sequence[RecordedExchange], everything: bool
) -> Iterator[Text]:
    at = step.span.attributes
    if messages.input or messages.output:
        yield from asked_lines(messages, everything)
        yield from _again(exchanges)
        yield from answered_lines(messages, everything)
        if not messages.output and exchanges:
            yield from _answer(exchanges[-1], everything)
        return
    if a.GEN_AI_TOOL_NAME in at:
        yield Text()
        name, given = str(at[a.GEN_AI_TOOL_NAME]), at.get(a.GEN_AI_TOOL_CALL_ARGUMENTS)
        yield from call_lines(name, given, f"{ASKED} ", "")
        if a.PLAYHEAD_IDEMPOTENT_OUTCOME in at:
            yield Text(f"  done once: {text_of(at[a.PLAYHEAD_IDEMPOTENT_OUTCOME])}", FAINT)
        yield from (_line_of(one) for one in exchanges if one.id.kind != "tool")
        if a.GEN_AI_TOOL_CALL_RESULT in at:
            yield Text()
            yield Text(f"{ANSWERED} {at[a.GEN_AI_TOOL_NAME]}", TITLE)
            yield from text_lines(text_of(at[a.GEN_AI_TOOL_CALL_RESULT]), "", everything)
        return
    for exchange in exchanges[-1:]:
        if exchange.id.kind != "http":
            yield from _talk(exchange, everything)
            return
        yield Text()
        yield Text(f"{ASKED} {exchange.key}", TITLE)
        yield from _readable(lambda one=exchange: one.request, exchange.request_headers, everything)
        yield from _again(exchanges)
        yield from _answer(exchange, everything)


def _talk(exchange: RecordedExchange, everything: bool) -> Iterator[Text]:
    """Yield the messages of a connection in both directions, in order of time."""
    yield Text()
    yield Text(exchange.key, TITLE)
    sent = [
        (part.time_ns, ASKED, lambda at=at: exchange.sent(at))
        for at, part in enumerate(exchange.exchange.sent)
    ]
    came = [
        (part.time_ns, ANSWERED, lambda at=at: exchange.chunks[at].data)
        for at, part in enumerate(exchange.exchange.parts)
    ]
    yield from _readable(lambda: exchange.request, (), everything)
    for _, arrow, read in sorted([*sent, *came], key=lambda one: one[0]):
        lines = list(_readable(read, (), everything))
        for number, line in enumerate(lines):
            yield Text(f"{' ' if number else arrow} ").append(line[2:])


def _readable(
    read: Callable[[], bytes], headers: Sequence[tuple[str, str]], everything: bool
) -> Iterator[Text]:
    """Yield the lines of a body that is on the tape; else why it is not there."""
    try:
        data, problem = decode_body(headers, [read()])
    except TapeError as trouble:
        data, problem = b"", trouble.what
    yield from body_lines(data, header_in(headers, "content-type"), everything)
    if problem:
        yield Text(f"  {problem}", ERROR)


def _again(exchanges: Sequence[RecordedExchange]) -> Iterator[Text]:
    """Yield the attempts before the last; equal ones once, with their number."""
    told: dict[str, int] = {}
    for exchange in exchanges[:-1]:
        try:
            said = one_line(body_text(exchange), 200)
        except TapeError:
            said = ""
        outcome = "  ".join(words for words in (_outcome(exchange), said) if words)
        told[outcome] = told.get(outcome, 0) + 1
    if told:
        yield Text()
    for outcome, times in told.items():
        status, _, said = outcome.partition("  ")
        line = Text().append(f"{AGAIN} {status}{f' ×{times}' if times > 1 else ''}", ERROR)
        yield line.append(f"  {said}" if said else "", FAINT)


def _outcome(exchange: RecordedExchange) -> str:
    end = exchange.end
    if exchange.status_code is not None:
        return str(exchange.status_code)
    if end is None:
        return "not answered"
    return end.how if end.error is None else f"{end.error.qualname}: {end.error.message}"


def _line_of(exchange: RecordedExchange) -> Text:
    return Text(f"  {exchange.key} → {_outcome(exchange)}", FAINT)


def _answer(exchange: RecordedExchange, everything: bool) -> Iterator[Text]:
    """Status and body of a response."""
    failed = (exchange.status_code or 0) >= 400 or exchange.status_code is None
    yield Text()
    yield Text(f"{ANSWERED} {_outcome(exchange)}", ERROR if failed else TITLE)
    yield from _readable(lambda: exchange.response, exchange.response_headers, everything)
    end, problem = exchange.end, ""
    if end is None and exchange.status_code is not None:
        problem = "the tape ends before the answer does"
    elif end is not None and end.how != "complete" and exchange.status_code is not None:
        error = f": {end.error.qualname}: {end.error.message}" if end.error is not None else ""
        problem = f"{end.how}{error}"
    if problem:
        yield Text(f"  {problem}", ERROR)


def _failures(span: Span, everything: bool) -> Iterator[Text]:
    """Yield the exceptions in the span of a step."""
    for event in span.events:
        if a.EXCEPTION_TYPE in event.attributes or a.EXCEPTION_MESSAGE in event.attributes:
            yield Text()
            yield from exception_lines(event, everything)


def _logs(run: Run, step: Step, everything: bool) -> Iterator[Text]:
    """Yield the log records of a step, without those that are shown as messages, scores or reports."""
    lines = [one for one in run.log_lines(step) if everything or one.event not in READ_EVENTS]
    if lines:
        yield Text()
        yield Text("Logs", TITLE)
    shown = len(lines) if everything else MOST_LOGS
    yield from (log_text(run, one) for one in lines[:shown])
    if len(lines) > shown:
        yield Text(f"  {FOLD} {count(len(lines) - shown, 'more log record')} (--all)", FAINT)


def exception_lines(event: SpanEvent, everything: bool) -> Iterator[Text]:
    """Yield an exception, and its traceback."""
    said = event.attributes.get(a.EXCEPTION_MESSAGE, "")
    yield Text(f"✗ {event.attributes.get(a.EXCEPTION_TYPE, '')}: {said}", ERROR)
    stack = str(event.attributes.get(a.EXCEPTION_STACKTRACE, "")).splitlines()
    if everything:
        yield from (Text(f"  {line}") for line in stack)
    elif stack:
        yield Text(f"  {FOLD} traceback of {count(len(stack), 'line')} (--all)", FAINT)


def _figures(run: Run, step: Step) -> str:
    """Tokens, cost, duration and time of a step."""
    span = step.span
    at, parts = span.attributes, list[str]()
    sent, received = at.get(a.GEN_AI_USAGE_INPUT_TOKENS), at.get(a.GEN_AI_USAGE_OUTPUT_TOKENS)
    if sent is not None or received is not None:
        kinds = [
            f"{at[name]} {kind}"
            for name, kind in (
                (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "cached"),
                (a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, "reasoning"),
            )
            if at.get(name)
        ]
        parts.append(f"{sent or 0}→{received or 0} tok" + (f" ({', '.join(kinds)})" if kinds else ""))
        parts.append(str(cost_of([(at, span.started_ns)])))
    parts.append("not ended" if span.duration_ns is None else took(span.duration_ns))
    waited_s = at.get(a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK)
    if isinstance(waited_s, float):
        parts.append(f"first chunk after {took(int(waited_s * 1e9))}")
    reasons: Any = at.get(a.GEN_AI_RESPONSE_FINISH_REASONS)
    if isinstance(reasons, list):
        ends = [str(one) for one in reasons if one not in EXPECTED]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        parts += [f"ended by {', '.join(ends)}"] if ends else []
    began = seconds(max(span.started_ns - run.started_ns, 0))
    parts.append(f"{began} after the start, at {clock(span.started_ns)}")
    return ", ".join(part for part in parts if part)
