"""Runs that somebody asked for in the small language: by what they are, and by what was said in them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

from playhead_receiver.language import Asked
from playhead_receiver.store import Hit, RunSummary, Upkeep
from playhead_receiver.store.listing import asks_for, order_of, place_after
from playhead_semconv.errors import RunUnknown

HITS = 1000
"""Places in which a text is looked for: of one that is said in more, the newest."""
_SAID = re.compile(r'"([^"]*)"|(\S+)')


def ask_runs(store: Upkeep, asked: Asked) -> Iterator[RunSummary]:
    """The runs, in the order and from the place that the query says. `UsageError`."""
    if not asked.text:
        return store.runs(asked.query)
    found = sorted(runs_saying(store, asked.text), key=lambda run: order_of(run, asked.query))
    wanted = (run for run in found if asks_for(asked.query, run))
    after = place_after(asked.query)
    if after is not None:
        measure, trace_id = after
        place = (measure if asked.query.ascending else -measure), trace_id
        wanted = (run for run in wanted if order_of(run, asked.query) > place)
    return islice(wanted, asked.query.limit)


def runs_saying(store: Upkeep, text: str) -> Iterator[RunSummary]:
    """The runs in which all words are said together."""
    for trace_id in dict.fromkeys(hit.trace_id for hit in store.search(text, HITS)):
        try:
            yield store.resolve(trace_id)
        except RunUnknown:  # deleted meanwhile
            continue


def ask_hits(store: Upkeep, asked: Asked) -> Iterator[tuple[RunSummary, Hit]]:
    """Where the text is said in the runs that were asked for, newest first. `UsageError`."""
    runs: dict[str, RunSummary | None] = {}
    given = 0
    for hit in store.search(asked.text, HITS):
        if given >= asked.query.limit:
            return
        if hit.trace_id not in runs:
            try:
                run = store.resolve(hit.trace_id)
            except RunUnknown:
                run = None
            runs[hit.trace_id] = run if run is not None and asks_for(asked.query, run) else None
        run = runs[hit.trace_id]
        if run is not None:
            given += 1
            yield run, hit


def highlights(excerpt: str, text: str) -> list[tuple[int, int]]:
    """Where words and phrases of ``text`` stand in an excerpt, in order, without overlaps.

    >>> highlights("Order 81, reorder", '"order 81"')
    [(0, 8)]
    """
    patterns: list[str] = []
    for phrase, word in _SAID.findall(_unaccented(text)):
        words = re.findall(r"\w+", phrase or word)
        if words:
            ending = "" if word.endswith("*") else r"\b"
            patterns.append(r"\b" + r"\W+".join(map(re.escape, words)) + ending)
    if not patterns:
        return []
    return [
        found.span() for found in re.finditer("|".join(patterns), _unaccented(excerpt), re.IGNORECASE)
    ]


def _unaccented(text: str) -> str:
    """As the search compares it, character for character."""
    return "".join(unicodedata.normalize("NFD", one)[0] for one in text)
