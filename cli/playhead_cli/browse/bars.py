"""Lines around the panes, and the line of a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.browse.details import TABS
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, TITLE
from playhead_cli.output.words import gist, label, offset, one_line
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

if TYPE_CHECKING:
    from playhead_cli.output.step_rows import Row
    from playhead_replay import Run

ROW_CHARS = 200


def heading_line(heading: Text, width: int, *, live: bool) -> Text:
    """``refund-7 failure, 24 steps, 41.2s … RECORDED``."""
    word = "LIVE" if live else "RECORDED"
    line = heading.copy()
    line.truncate(max(width - len(word) - 1, 0), overflow="ellipsis", pad=True)
    return line.append(f" {word}", TITLE)


def tab_line(tab: str) -> Text:
    """Return the names of the tabs; the active one is highlighted."""
    line = Text()
    for name in TABS:
        line.append(f" {name} ", "reverse" if name == tab else FAINT)
    return line


def row_line(row: Row, digits: int, flag: str) -> Text:
    """``✗ 24 refund  ValueError: no order``. ``flag``: a breakpoint or a mark, one sign."""
    span, step = row.span, row.step
    sign = "✗" if span.failed else "…" if span.pending else " "
    style = ERROR if span.failed else ""
    line = Text(sign, style).append(flag, TITLE)
    line.append(f"{step.number if step else '':>{digits}} ", NUMBER)
    named = span.attributes.get(a.GEN_AI_TOOL_NAME) if span.operation == Operation.EXECUTE_TOOL else None
    line.append("  " * min(row.depth, 20) + one_line(named or label(span), ROW_CHARS), style)
    told = gist(step) if step is not None else span.error
    return line.append(f"  {one_line(told, ROW_CHARS)}", style or FAINT) if told else line


def timeline(width: int, at: int, count: int, errors: Iterable[int]) -> Text:
    """Return ``────●────✗``: the positions of the cursor and the errors among all rows."""
    if width <= 0 or not count:
        return Text("")
    last = max(count - 1, 1)

    def column(row: int) -> int:
        return row * (width - 1) // last

    line = Text("─" * width, FAINT)
    signs = dict.fromkeys(map(column, errors), ("✗", ERROR)) | {column(at): ("●", TITLE)}
    plain = list(line.plain)
    for place, (sign, _) in signs.items():
        plain[place] = sign
    line.plain = "".join(plain)
    for place, (_, style) in signs.items():
        line.stylize(style, place, place + 1)
    return line


def place_line(run: Run, number: int, row: Row | None) -> str:
    """``12/24  11.2s  ?help``."""
    time_ns = run.started_ns if row is None else row.span.started_ns
    return f"  {number}/{len(run.steps)}  {offset(time_ns - run.started_ns)}  ?help"
