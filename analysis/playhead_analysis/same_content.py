"""What a run read, and whether another run read the same and acted on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from playhead_core.errors import PlayheadError
from playhead_core.untrusted.shown_text import in_one_line
from playhead_replay.derived.instructions import followed_instructions
from playhead_replay.derived.value_origins import MOST_CHARS, sources_of
from playhead_replay.run.run import Run
from playhead_replay.timeline.tool_calls import ToolCallStep, tool_calls_of

READ: Final = frozenset(("result", "response", "file", "database", "input", "request", "message"))
"""Kinds of sources that bring content from outside into a run."""
FEWEST_CHARS, FEWEST_WORDS = 24, 4
"""Shorter contents, such as ``ok``, say nothing about a run."""
MOST_CONTENTS: Final = 5
"""Contents of a run that are looked for: the longest ones."""
PHRASE_WORDS: Final = 10
LONGEST_LINE: Final = 20_000
EXCERPT_CHARS: Final = 120
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ReadContent:
    """A text that a run read: a result of a tool, a response, a file, a message."""

    place: str
    """The step that read it first: ``3``, ``3.1``."""
    source: str
    """What it came from: a tool, a file, a request; else its kind."""
    excerpt: str
    chars: int
    is_common: bool = False
    """Whether so many other runs have it that they are not listed."""


@dataclass(frozen=True, slots=True)
class SameContent:
    """A run that read the same content."""

    name: str
    trace_id: str
    status: str
    content: int
    """Index of the content."""
    place: str
    """Where the run read it first."""
    source: str
    acted: list[str]
    """Calls that follow an instruction in it: ``5.1 send_email eve@evil.example``."""


def contents_of(run: Run, step: int | None = None) -> list[tuple[ReadContent, str]]:
    """Return the longest contents that a run read, at a step or at any, each with its whole text."""
    found: dict[str, ReadContent] = {}
    for place, source, text in _texts(run, tool_calls_of(run)):
        number = place.partition(".")[0]
        told = len(text) >= FEWEST_CHARS and len(_WORD.findall(text[:LONGEST_LINE])) >= FEWEST_WORDS
        if told and (step is None or number == str(step)):
            excerpt = in_one_line(" ".join(text[: 4 * EXCERPT_CHARS].split())[:EXCERPT_CHARS])
            found.setdefault(text, ReadContent(place, in_one_line(source), excerpt, len(text)))
    longest = sorted(found.items(), key=lambda item: -len(item[0]))[:MOST_CONTENTS]
    return [(content, text) for text, content in longest]


def telling_phrase(text: str) -> str:
    """Return words of a text that few others have in this order: the longest ones in a row.

    >>> telling_phrase("it is so. extraordinarily complicated circumstances prevail here")
    'it is so. extraordinarily complicated circumstances prevail here'
    """
    best = (0, "")
    for line in text.splitlines():
        line = line[:LONGEST_LINE].replace('"', " ")
        words = list(_WORD.finditer(line))
        for first in range(max(len(words) - PHRASE_WORDS, 0) + 1 if words else 0):
            some = words[first : first + PHRASE_WORDS]
            weight = sum(len(word[0]) for word in some)
            if weight > best[0]:
                best = weight, line[some[0].start() : some[-1].end()]
    return best[1]


def reading_of(run: Run, content: int, text: str) -> SameContent | None:
    """Return where a run read a text, and what it did about it; None if it did not read it."""
    calls = tool_calls_of(run)
    texts = _texts(run, calls)
    found = next(((place, source) for place, source, one in texts if text in one), None)
    if found is None:
        return None
    plain = " ".join(text.split())
    acted = [
        in_one_line(f"{one.place} {one.name} {one.target}")
        for one in followed_instructions(run, calls)
        if one.quote in plain
    ]
    place, source = found
    return SameContent(run.name, run.trace_id, run.status, content, place, in_one_line(source), acted)


def _texts(run: Run, calls: Sequence[ToolCallStep]) -> Iterator[tuple[str, str, str]]:
    """Yield what a run read, by time: step, source and text. What cannot be read is left out."""
    for source in sources_of(run, calls):
        if source.kind in READ:
            with suppress(PlayheadError, ValueError):
                yield source.place, source.name or source.kind, source.read()[:MOST_CHARS].strip()
