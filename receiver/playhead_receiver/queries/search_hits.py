"""Search hits with step, source and surrounding text. Each text of a run is reported once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby, islice

from typing_extensions import TypedDict

from playhead_receiver.queries.language import ParsedQuery
from playhead_receiver.queries.matching_runs import MatchingRuns
from playhead_receiver.queries.message_texts import (
    Speech,
    earlier_speeches_of,
    other_texts_of,
    speeches_of,
)
from playhead_receiver.storage import Hit, RunSummary, Store
from playhead_receiver.storage.api.search import MOST_EXAMINED, Search
from playhead_receiver.storage.api.store import needed
from playhead_receiver.storage.content.references import References
from playhead_receiver.storage.content.words import highlights, share_in
from playhead_receiver.storage.runs.summary_fold import counted_steps
from playhead_receiver.storage.spans.whole_spans import Deriver
from playhead_receiver.storage.values.span_labels import SpanRow

BEFORE, AFTER = 40, 120
"""Characters of a text that are shown before and after the beginning of a match."""
LAST = sys.maxsize
"""Sorts hits that belong to no step after all steps."""
HITS = 8
"""Entries of the index that are read at first for each requested hit."""


class SearchHit(TypedDict):
    """A text that contains all searched words, as the API and ``playhead search --json`` have it."""

    run: str
    trace_id: str
    step: int | None
    """Number of the step, as `playhead show` counts; null if it belongs to none."""
    span_id: str
    """Span that contains it; may be empty."""
    time_ns: int
    who: str
    """Source: a role, a tool, the method of a request, the name of an attribute, or a stream."""
    excerpt: str
    """Surrounding text."""
    highlights: list[tuple[int, int]]
    """Matches in the excerpt: start and end offset."""


def find_text_hits(
    store: Store, parsed: ParsedQuery, references: References | None = None
) -> list[SearchHit]:
    """The texts that contain the text of a query, in the runs that match it.

    Newest run first, in the order of each run; at most as many as the query's limit.
    `UsageError` if the text has no word.
    """
    runs = MatchingRuns(store, parsed.query)
    if runs.none:
        return []
    limit, number = parsed.query.limit, parsed.query.limit * HITS
    while True:
        hits = needed(store, Search).search(parsed.text, number, runs.has)
        finder = _Finder(store, parsed.text, references or References())
        found = list(islice(_in_order(hits, runs, finder), limit))
        if len(found) >= limit or len(hits) < number or number >= MOST_EXAMINED:
            return found
        number = min(number * HITS, MOST_EXAMINED)


def _in_order(hits: list[Hit], runs: MatchingRuns, finder: _Finder) -> Iterator[SearchHit]:
    by_run: dict[str, list[Hit]] = {}
    for hit in hits:
        by_run.setdefault(hit.trace_id, []).append(hit)
    known = [(run, own) for id, own in by_run.items() if (run := runs.run(bytes.fromhex(id)))]
    known.sort(key=lambda one: (-one[0].started_ns, one[0].trace_id))
    for run, own in known:
        yield from finder.hits_of_run(run, own)


class _Finder:
    """Finds the texts of hits."""

    def __init__(self, store: Store, text: str, references: References) -> None:
        self._store = store
        self._text = text
        self._references = references
        self._deriver = Deriver(store)

    def hits_of_run(self, run: RunSummary, hits: list[Hit]) -> list[SearchHit]:
        """The hits of a run, in its order."""
        steps = _Steps(self._store.outline(bytes.fromhex(run.trace_id)))
        found: list[SearchHit] = []
        said: list[str] = []
        spoken = [hit for hit in hits if not hit.effect and not hit.log]
        spoken.sort(key=lambda hit: (steps.number(hit.span_id) or LAST, hit.time_ns))
        for span_id, same in groupby(spoken, key=lambda hit: steps.owner(hit.span_id)):
            own = list(same)
            hit = next((one for one in own if one.is_request), own[0])
            for speech in self._speeches(run, span_id, hit):
                if _is_new(speech.text, said):
                    found.append(self._passage(run, steps.number(span_id), span_id, hit, speech))
        for hit in hits:
            if (hit.effect or hit.log) and _is_new(hit.excerpt.strip("…"), said):
                speech = Speech(hit.effect or "log", hit.excerpt)
                number = steps.number(hit.span_id)
                found.append(self._passage(run, number, hit.span_id, hit, speech))
        found.sort(key=lambda one: one["step"] or LAST)
        return found

    def _speeches(self, run: RunSummary, span_id: str, hit: Hit) -> list[Speech]:
        """The texts of a span that contain all searched words; otherwise those that contain some.

        Empty if only attributes of the recorder contain them.
        """
        trace_id, id = bytes.fromhex(run.trace_id), bytes.fromhex(span_id)
        whole = next((self._deriver.whole(one) for one in self._store.spans(trace_id, [id])), None)
        if whole is None:
            starts = (one for one in self._store.pending(trace_id) if one.span_id == id)
            whole = next((self._deriver.begun(one) for one in starts), None)
        if whole is None:
            return [Speech("request" if hit.is_request else "step", hit.excerpt)]
        speeches = speeches_of(whole, self._references)
        for texts in (speeches, earlier_speeches_of(whole, self._references)):
            if found := [one for one in texts if self._held(one.text) == 1]:
                return found
        others = list(other_texts_of(whole, self._references))
        return (
            [one for one in others if self._held(one.text) == 1]
            or [one for one in [*speeches, *others] if self._held(one.text)]
            or ([Speech("request", hit.excerpt)] if hit.is_request else [])
        )

    def _held(self, said: str) -> float:
        """The share of the searched words and phrases that a text contains."""
        return share_in(said, self._text)

    def _passage(
        self, run: RunSummary, step: int | None, span_id: str, hit: Hit, speech: Speech
    ) -> SearchHit:
        excerpt = _around(speech.text, self._text)
        return {
            "run": run.name,
            "trace_id": run.trace_id,
            "step": step,
            "span_id": span_id,
            "time_ns": hit.time_ns,
            "who": speech.who,
            "excerpt": excerpt,
            "highlights": highlights(excerpt, self._text),
        }


def _is_new(text: str, said: list[str]) -> bool:
    """Whether no earlier text contains this one, which is added to them."""
    text = " ".join(text.split()).casefold()
    if any(text in one for one in said):
        return False
    said.append(text)
    return True


def _around(text: str, parsed: str) -> str:
    """One line of a text, around its first match."""
    text = " ".join(text.split())
    first = next(iter(highlights(text, parsed)), (0, 0))[0]
    begin, end = max(0, first - BEFORE), first + AFTER
    if begin:
        begin = text.find(" ", begin, first) + 1 or begin
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")


class _Steps:
    """The steps of a run, by the ids of their spans and of the spans inside them."""

    def __init__(self, rows: list[SpanRow]) -> None:
        counted = counted_steps(rows)
        steps = [row for row in rows if row.span_id in counted]
        steps.sort(key=lambda row: (row.start_ns, row.span_id))
        self._numbers = {row.span_id: number for number, row in enumerate(steps, 1)}
        self._parents = {row.span_id: row.parent for row in rows}

    def owner(self, span_id: str) -> str:
        """The span of the step that a span is or belongs to; the span itself if there is none."""
        one, seen = bytes.fromhex(span_id), set[bytes]()
        while one and one not in self._numbers and one not in seen:
            seen.add(one)
            one = self._parents.get(one, b"")
        return one.hex() if one in self._numbers else span_id

    def number(self, span_id: str) -> int | None:
        """The number of the step that a span is or belongs to."""
        return self._numbers.get(bytes.fromhex(self.owner(span_id)))
