"""Find where a value of a run comes from: everything before a step that holds it, the earliest first.

Sources are what the program was given: its command line, requests to it, standard input, files, rows of
SQLite databases, responses, results of tools, messages and answers of models. A value that no source
holds was written by the model, or by the program in a way that is not recorded, such as arithmetic.
"""

from __future__ import annotations

import calendar
import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote_plus

from playhead_core.errors import PlayheadError
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.messages import Part, Reasoning, Text, ToolCall
from playhead_genai.readable_text import news, text_of
from playhead_replay.databases.history import OPENED
from playhead_replay.databases.tables import plain_value, tables_of
from playhead_replay.run.histories import GrowingHistory
from playhead_replay.run.run import Run
from playhead_replay.timeline.tool_calls import ToolCallStep
from playhead_replay.workspace.file_changes import file_changes
from playhead_semconv import attributes as a
from playhead_semconv import events as e

MOST_CHARS: Final = 4_000_000
"""Characters of a source that are searched."""
MOST_ROWS: Final = 10_000
"""Rows of a table that are searched."""
SHORTEST_LOOSE: Final = 4
LONGEST_LOOSE: Final = 500
"""Letters and digits of a value that is also found in another spelling."""
QUOTE_CHARS: Final = 40
"""Characters on each side of the value in a quote."""

SourceKind: TypeAlias = Literal[
    "argument",
    "environment",
    "request",
    "input",
    "file",
    "database",
    "response",
    "result",
    "system",
    "message",
    "answer",
]
"""``request``: to the program; ``response``: to the program's own request; ``result``: of a tool."""

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}
_NUMBER: Final = re.compile(
    r"(?<![\w.])(?:(?P<comma>\d{1,3}(?:\.\d{3})*,\d{1,2}(?![\d,.]))|[+-]?\d[\d,_']*(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"(?!\w)"
)
"""Numbers, also with a decimal comma: `1.234,50`."""
_MONTHS: Final = {name[:3].lower(): number for number, name in enumerate(calendar.month_name) if number}
_DATE: Final = re.compile(
    r"\b(?:(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})|"
    r"(?P<d2>\d{1,2})(?:st|nd|rd|th|\.)? (?P<m2>[A-Za-z]{3,9})\.?,? (?P<y2>\d{4})|"
    r"(?P<m3>[A-Za-z]{3,9})\.? (?P<d3>\d{1,2})(?:st|nd|rd|th)?,? (?P<y3>\d{4})|"
    r"(?P<d4>\d{1,2})\.(?P<m4>\d{1,2})\.(?P<y4>\d{4}))(?!\d)"
)
"""Dates whose order is clear; `11/12/2026` is not."""
SHORTEST_DIGITS: Final = 7
"""Digits of a number, as of a telephone, that is also found with spaces and dashes in it."""


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """A source that holds a value."""

    kind: SourceKind
    name: str
    """``./note.txt``, ``GET https://…``, a tool, a variable; empty if it has none."""
    place: str
    """The step that it belongs to, ``3`` or ``2.1``; empty if it belongs to none."""
    time_ns: int
    """When the program had it."""
    exact: bool
    """False: the value stands there in another spelling."""
    quote: str
    """The value with what stands around it, in one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text that a program was given."""

    kind: SourceKind
    name: str
    place: str
    time_ns: int
    read: Callable[[], str]


def origins_of(
    sources: Iterable[Source], values: Iterable[Any], before_ns: int
) -> list[list[ValueOrigin]]:
    """Return for each value the sources that hold it before a time, the earliest first.

    ``sources``: `sources_of`. A source that cannot be read is left out.
    """
    wanted = [(_Wanted(value), list[ValueOrigin]()) for value in values]
    for source in sources if wanted else ():
        if source.time_ns >= before_ns:
            break
        with suppress(PlayheadError, ValueError):
            text = source.read()[:MOST_CHARS]
            for value, origins in wanted:
                if held := value.find(text):
                    where = source.kind, source.name, source.place, source.time_ns
                    origins.append(ValueOrigin(*where, *held))
    return [origins for _, origins in wanted]


def sources_of(run: Run, calls: Iterable[ToolCallStep]) -> list[Source]:
    """Return what a run was given, by time. ``calls``: `tool_calls_of`."""
    given = [
        *_of_start(run),
        *(source for tape in run.tapes for source in _of_tape(tape)),
        *_of_exchanges(run),
        *_of_models(run),
        *_of_tools(calls),
    ]
    return sorted(given, key=lambda one: one.time_ns)


class _Wanted:
    """A value in the spellings in which it is looked for."""

    def __init__(self, value: Any) -> None:
        text = text_of(value).strip()
        before = r"(?<!\w)" if text[:1].isalnum() else ""
        after = r"(?!\w)" if text[-1:].isalnum() else ""
        self._exact = re.compile(before + re.escape(text) + after) if text else None
        self._number = _number(text)
        letters = [re.escape(one) for one in _folded(text) if one.isalnum()]
        # Dots and signs change a number, so numbers are compared by their value.
        self._date = _date(match) if (match := _DATE.fullmatch(text)) else None
        digits = text.lstrip("+")
        is_long = digits.isascii() and digits.isdigit() and len(digits) >= SHORTEST_DIGITS
        is_word = SHORTEST_LOOSE <= len(letters) <= LONGEST_LOOSE
        is_loose = is_word and self._date is None and (self._number is None or is_long)
        loose = r"(?<!\w)" + r"[\W_]{0,3}".join(letters) + r"(?!\w)"
        if is_long:
            loose = r"(?<!\d[ -])(?<!\w)" + r"[ ()/\-\u00a0]{0,3}".join(letters) + r"(?![ -]?\d)(?!\w)"
        self._loose = re.compile(loose) if is_loose else None

    def find(self, text: str) -> tuple[bool, str] | None:
        """Return whether a text has the value exactly, and a quote; None if it has it in no spelling."""
        if self._exact is None:
            return None
        if found := self._exact.search(text):
            return True, _quote(text, found)
        plain = _ESCAPE.sub(_unescaped, text)
        if "%" in plain:
            plain = unquote_plus(plain)
        if "&" in plain:
            plain = html.unescape(plain)
        if plain != text and (found := self._exact.search(plain)):
            return True, _quote(plain, found)
        if self._number is not None:
            numbers = _NUMBER.finditer(plain)
            same = next((one for one in numbers if _value_of(one) == self._number), None)
            if same is not None:
                return False, _quote(plain, same)
        if self._date is not None:
            same = next((one for one in _DATE.finditer(plain) if _date(one) == self._date), None)
            if same is not None:
                return False, _quote(plain, same)
        folded = _folded(plain)
        if self._loose is None or not (found := self._loose.search(folded)):
            return None
        return False, _quote(folded, found)


def _number(text: str) -> Decimal | None:
    found = _NUMBER.fullmatch(text)
    return None if found is None else _value_of(found)


def _date(found: re.Match[str]) -> tuple[int, int, int] | None:
    """Return year, month and day; None if the word is no month."""
    year, month, day = (
        next(value for name, value in found.groupdict().items() if name[0] == part and value)
        for part in "ymd"
    )
    number = int(month) if month.isdigit() else _MONTHS.get(month[:3].lower())
    return None if number is None else (int(year), number, int(day))


def _value_of(found: re.Match[str]) -> Decimal | None:
    text = found[0]
    if found["comma"]:
        text = text.replace(".", "").replace(",", ".")
    try:
        return Decimal(re.sub(r"[,_']", "", text))
    except InvalidOperation:
        return None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2])


def _quote(text: str, found: re.Match[str]) -> str:
    begin, end = max(0, found.start() - QUOTE_CHARS), found.end() + QUOTE_CHARS
    return " ".join(text[begin:end].split())


def _of_start(run: Run) -> Iterator[Source]:
    if not run.tapes:
        return
    with suppress(PlayheadError):
        command = run.command
        words = " ".join(command.arguments)
        yield Source("argument", "", "", run.started_ns, lambda: words)
        for name, value in command.environment.items():
            yield Source("environment", name, "", run.started_ns, lambda value=value: value)
    for request in run.requests:
        at = "request", request.key, "", request.exchange.time_ns
        yield Source(*at, lambda of=request: "\n".join([of.key, *of.headers, _text(of.body)]))


def _of_tape(tape: IndexedTape) -> Iterator[Source]:
    for change in file_changes(tape):
        if change.what == "seen":
            at = "file", change.name, "", change.time_ns
            yield Source(*at, lambda of=change: _text(of.data() or b""))
    for fact in tape.named(e.PLAYHEAD_READ):
        kind = str(fact.attributes.get(a.PLAYHEAD_READ_KIND, ""))
        if kind.startswith(OPENED) and fact.body is not None:
            at = "database", kind.removeprefix(OPENED), "", fact.time_ns
            yield Source(*at, lambda of=fact.body: _rows(tape.read(of)))


def _rows(image: bytes) -> str:
    """Return each row of a database in a line that begins with the name of its table."""
    return "\n".join(
        f"{table.name}: {', '.join(map(text_of, map(plain_value, row)))}"
        for table in tables_of(image, MOST_ROWS)
        for row in table.rows
    )


def _of_exchanges(run: Run) -> Iterator[Source]:
    """Yield responses but those of models, whose answers are read as messages."""
    of_models = {span.span_id for step in run.calls for span in (step.span, *step.attempts)}
    for exchange in run.exchanges:
        if exchange.span_id in of_models or not exchange.has_content:
            continue
        step = run.step_of(exchange.span_id) if exchange.span_id else None
        place = "" if step is None else str(step.number)
        parts = exchange.exchange.parts
        time_ns = parts[-1].time_ns if parts else exchange.exchange.time_ns
        is_input = exchange.key == "stdin"
        at = ("input", "") if is_input else ("response", exchange.key)
        yield Source(*at, place, time_ns, lambda of=exchange: _text(of.decoded_response))


def _of_models(run: Run) -> Iterator[Source]:
    history = GrowingHistory()
    for number, step in enumerate(run.calls):
        messages, place, span = run.messages(step, history), str(step.number), step.span
        if number == 0:
            said = [_said(part) for part in messages.system]
            yield Source("system", "", place, span.started_ns, "\n".join(said).strip)
        for message in messages.input if number == 0 else news(messages.input):
            if message.role == "assistant":
                continue
            said = [part.content for part in message.parts if isinstance(part, Text)]
            kind = "system" if message.role in ("system", "developer") else "message"
            yield Source(kind, "", place, span.started_ns, "\n".join(said).strip)
        said = [_said(part) for message in messages.output for part in message.parts]
        yield Source("answer", "", place, span.ended_ns or span.started_ns, "\n".join(said).strip)


def _said(part: Part) -> str:
    if isinstance(part, Text | Reasoning):
        return part.content
    return f"{part.name}({text_of(part.arguments)})" if isinstance(part, ToolCall) else ""


def _of_tools(calls: Iterable[ToolCallStep]) -> Iterator[Source]:
    for call in calls:
        if call.ended_ns is not None and call.result is not None:
            at = "result", call.name, call.number, call.ended_ns
            yield Source(*at, lambda of=call: text_of(of.result))


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
