"""The lines of each tab of details."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.step.bodies import body_lines
from playhead_cli.output.step.moment import change_lines, moment_lines
from playhead_cli.output.step.overview import attribute_lines, exception_lines, heading, step_lines
from playhead_cli.output.step.wire import wire_lines
from playhead_cli.output.styles import ERROR, FAINT, TITLE
from playhead_cli.output.words import count, label, seconds, took
from playhead_core.errors import TapeError
from playhead_genai.providers.encodings import decode_body
from playhead_genai.providers.encodings import header as header_in
from playhead_replay.timeline import differences

if TYPE_CHECKING:
    from playhead_cli.browse.opened import OpenRun
    from playhead_cli.output.step_rows import Row
    from playhead_replay import RecordedExchange, Run, Step


@dataclass(frozen=True, slots=True)
class WantedDetails:
    """The details that the browser shows next to the rows."""

    tab: str
    row: Row | None
    """None if there is no step."""
    number: int
    """The step at which states are shown."""
    everything: bool
    """Nothing is folded."""
    against: str = ""
    """The base of the difference: ``origin``, the number of a step, or empty for the step before."""


def lines_of(source: OpenRun, wanted: WantedDetails) -> Iterator[Text]:
    """Return the lines of a tab. `PlayheadError` if they cannot be read."""
    run, row = source.run, wanted.row
    if row is None:
        return iter((Text("there is no step", FAINT),))
    if wanted.tab == "State":
        return moment_lines(source.moments.after(wanted.number), wanted.everything)
    if wanted.tab == "Diff":
        return _difference(source, wanted)
    step = row.step
    if step is None:
        return _span_lines(run, row)
    if wanted.tab == "Messages":
        return step_lines(run, step, run.messages(step), wanted.everything)
    return _OF_STEPS[wanted.tab](run, step)


def _span_lines(run: Run, row: Row) -> Iterator[Text]:
    """Yield the details of a row that is not a step: an agent, a workflow, any other span."""
    span = row.span
    yield Text(label(span), TITLE)
    lasted = "not ended" if span.duration_ns is None else took(span.duration_ns)
    yield Text(f"{seconds(max(span.started_ns - run.started_ns, 0))} after the start, {lasted}", FAINT)
    if span.failed:
        yield Text(span.error, ERROR)
    for event in span.events:
        yield from exception_lines(event, everything=True)
    yield from attribute_lines(span.attributes)


def _request(run: Run, step: Step) -> Iterator[Text]:
    yield heading(run, step)
    exchanges = run.exchanges_of(step)
    if not exchanges:
        yield Text("it asked nothing that is on the tape", FAINT)
        return
    last = exchanges[-1]
    yield _title(last, last.key, len(exchanges))
    yield from _headers(last.request_headers)
    yield from _body(lambda: [last.request], last.request_headers)


def _response(run: Run, step: Step) -> Iterator[Text]:
    yield heading(run, step)
    exchanges = run.exchanges_of(step)
    if not exchanges:
        yield Text("nothing was answered that is on the tape", FAINT)
        return
    last, end = exchanges[-1], exchanges[-1].end
    answered = "not answered yet" if end is None else end.how
    yield _title(last, answered if last.status_code is None else str(last.status_code), len(exchanges))
    yield from _headers(last.response_headers)
    yield from _body(lambda: [one.data for one in last.chunks], last.response_headers)
    if end is not None and end.error is not None:
        yield Text(f"{end.error.qualname}: {end.error.message}", ERROR)
    elif end is not None and end.how != "complete":
        yield Text(end.how, FAINT)


_OF_STEPS: Mapping[str, Callable[[Run, Step], Iterator[Text]]] = {
    "Request": _request,
    "Response": _response,
    "Raw": wire_lines,
}
TABS = ("Messages", "Request", "Response", "State", "Diff", "Raw")
"""The tabs, in order: key 1 is the first."""


def _title(exchange: RecordedExchange, what: str, attempts: int) -> Text:
    again = f", the last of {count(attempts, 'attempt')}" if attempts > 1 else ""
    return Text(f"{what}  ", TITLE).append(f"{exchange.name}{again}", FAINT)


def _headers(headers: Iterable[tuple[str, str]]) -> Iterator[Text]:
    return (Text(f"  {name}: {value}", FAINT) for name, value in headers)


def _body(read: Callable[[], list[bytes]], headers: list[tuple[str, str]]) -> Iterator[Text]:
    """Yield the decoded body; why it is not there if the tape does not hold it."""
    try:
        data, problem = decode_body(headers, read())
    except TapeError as trouble:
        data, problem = b"", trouble.what
    yield from body_lines(data, header_in(headers, "content-type"), everything=True)
    if problem:
        yield Text(f"  {problem}", ERROR)


def _difference(source: OpenRun, wanted: WantedDetails) -> Iterator[Text]:
    """Yield the differences between the states at two steps."""
    run = source.run
    if wanted.against == "origin":
        other = source.origin_moments()
        first = other.after(min(wanted.number, len(other.run.steps)))
    else:
        before = max(wanted.number - 1, 0)
        first = source.moments.after(int(wanted.against) if wanted.against else before)
    second = source.moments.after(wanted.number)
    yield Text(f"{first.run.name}:{first.step} → {run.name}:{second.step}", TITLE)
    yield from change_lines(differences(first, second))
