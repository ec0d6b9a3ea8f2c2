"""Search hits as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.columns import padded, widths_of
from playhead_cli.output.styles import FAINT, NUMBER
from playhead_cli.output.words import one_line

if TYPE_CHECKING:
    from playhead_receiver.queries.search_hits import SearchHit

WHO_CHARS = 20
"""Largest length of the author of a text."""


def passage_lines(found: Sequence[SearchHit], width: int | None = None) -> Iterator[Text]:
    """Yield step, author and surrounding text; the search words are highlighted.

    ``width``: columns of the terminal; None if the lines do not go to one.
    """
    places = [place_of(one) for one in found]
    speakers = [one_line(one["who"], WHO_CHARS) for one in found]
    widths = widths_of(list(zip(places, speakers, strict=True)))
    for one, place, who in zip(found, places, speakers, strict=True):
        line = Text(padded(place, widths[0]), style=NUMBER)
        excerpt = Text(one["excerpt"])
        for begin, end in one["highlights"]:
            excerpt.stylize("bold reverse", begin, end)
        if width is not None and one["highlights"]:
            excerpt = _fitted(excerpt, one["highlights"][0], width - sum(widths) - 4)
        yield Text("").append(line).append(f"  {padded(who, widths[1])}  ", FAINT).append(excerpt)


def _fitted(excerpt: Text, match: tuple[int, int], room: int) -> Text:
    """Return an excerpt without so much of its beginning that the match can be seen."""
    begin, end = match
    if end < room or room <= 0:
        return excerpt
    left_out = min(begin, end - room * 2 // 3)
    return Text("…").append(excerpt[max(left_out, 0) :])


def place_of(passage: SearchHit) -> str:
    """Return ``refund-7:2``; only the run if the text belongs to no step."""
    step = "" if passage["step"] is None else f":{passage['step']}"
    return f"{passage['run']}{step}"
