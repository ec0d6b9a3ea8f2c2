"""Which other runs hold a value: found in the search index, so a store of any size answers at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from playhead_core.errors import RunUnknown, UsageError
from playhead_receiver.storage.api.search import Search
from playhead_replay.derived.blame import Blame

MOST_HITS: Final = 200
"""Texts with the value that are looked at, the newest ones: a value may be in each run."""


def runs_with(store: Search, value: str, but: str) -> list[str]:
    """Return the names of the newest runs that hold a value word by word, the newest first.

    ``but``: the trace id of a run that is left out. A value without a letter or digit is in no run.
    """
    own, phrase = bytes.fromhex(but), value.replace('"', " ").strip()
    try:
        hits = store.search(f'"{phrase}"', MOST_HITS, lambda trace: trace != own)
    except UsageError:
        return []
    found: list[str] = []
    for trace_id in dict.fromkeys(hit.trace_id for hit in hits):
        try:
            found.append(store.resolve(trace_id).name)
        except RunUnknown:  # deleted in the meantime
            continue
    return found


def blamed_with_runs(store: Search, found: Blame, but: str) -> Blame:
    """Return what `blame` found, with the names of the other runs that hold each value."""
    calls = [
        replace(
            call, values=[replace(one, runs=runs_with(store, one.value, but)) for one in call.values]
        )
        for call in found.calls
    ]
    return replace(found, calls=calls)
