"""Finds the runs that read the same content as a run, through the search index."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from playhead_analysis.same_content import (
    ReadContent,
    SameContent,
    contents_of,
    reading_of,
    telling_phrase,
)
from playhead_core.errors import RunUnknown
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import OF_ONE_RUN
from playhead_replay import Run

MOST_RUNS: Final = 100
"""Runs that are read for a content. One that more runs read is common, and says little."""


def same_content(
    store: Search, run: Run, step: int | None = None
) -> tuple[list[ReadContent], list[SameContent]]:
    """Return what a run read, at a step or at any, and the other runs that read the same.

    The index finds the runs that have a phrase of the content; each is read, so that only those remain
    that have all of it. Of a common content no runs are returned.
    """
    contents: list[ReadContent] = []
    found: list[SameContent] = []
    for content, text in contents_of(run, step):
        traces = _traces_with(store, telling_phrase(text), bytes.fromhex(run.trace_id))
        is_common = len(traces) > MOST_RUNS
        for trace_id in () if is_common else traces:
            try:
                other = Run.load(store, trace_id)
                reading = reading_of(other, len(contents), text)
            except (RunUnknown, *OF_ONE_RUN):  # deleted in the meantime, or damaged
                continue
            found += [] if reading is None else [reading]
        contents.append(replace(content, is_common=is_common))
    return contents, found


def _traces_with(store: Search, phrase: str, own: bytes) -> list[str]:
    """Return the ids of other traces with a phrase, at most one more than `MOST_RUNS`."""
    seen = {own}

    def is_new(trace_id: bytes) -> bool:
        """Whether no earlier hit is in this trace: one for each is enough, and each costs a read."""
        is_first = trace_id not in seen
        seen.add(trace_id)
        return is_first

    hits = store.search(f'"{phrase}"', MOST_RUNS + 1, is_new) if phrase else []
    return list(dict.fromkeys(hit.trace_id for hit in hits))
