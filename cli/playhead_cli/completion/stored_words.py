"""Names of runs and values of query fields, read directly from the store's file.

Importing the store takes too long for a completion. Runs in a database are not offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FILE = "store.sqlite"
WAITS_S = 0.2
"""How long a writer is waited for."""

KINDS = {
    "version": 1,
    "environment": 2,
    "conversation": 3,
    "model": 4,
    "provider": 5,
    "tool": 6,
    "error": 7,
    "user": 8,
    "tag": 9,
    "prompt": 10,
    "prompt_version": 11,
    "release": 12,
    "goal": 13,
    "phase": 14,
    "decision": 15,
    "signal": 16,
    "failure": 18,
    "agent_type": 22,
}
"""Fields whose values the store lists, and their number in ``run_word.kind``."""

MOST = 100
"""Largest number of words that are offered."""

_HARMLESS = re.compile(r"[\w.@+/-]+\Z", re.ASCII)
"""Words that a shell needs no quotes for; recorded names may contain any character."""


def run_names(data_dir: Path, beginning: str) -> list[str]:
    """Return names of runs, newest first."""
    found = _column(
        data_dir,
        "SELECT name FROM run WHERE substr(name, 1, ?) = ? AND mode <> 'replay'"
        " ORDER BY started_ns DESC LIMIT ?",
        (len(beginning), beginning, MOST),
    )
    return list(found)


def field_values(data_dir: Path, field: str, beginning: str) -> list[str]:
    """Return values of a field of runs, in order; empty if the store does not list them."""
    asked = (len(beginning), beginning, MOST)
    if field == "agent":
        question = "SELECT DISTINCT agent FROM run WHERE substr(agent, 1, ?) = ? ORDER BY agent LIMIT ?"
        return list(_column(data_dir, question, asked))
    if field not in KINDS:
        return []
    question = (
        "SELECT DISTINCT word FROM run_word WHERE kind = ? AND substr(word, 1, ?) = ?"
        " ORDER BY word LIMIT ?"
    )
    return list(_column(data_dir, question, (KINDS[field], *asked)))


def _column(data_dir: Path, question: str, values: tuple[object, ...]) -> Iterator[str]:
    import sqlite3

    try:
        db = sqlite3.connect(f"{(data_dir / FILE).as_uri()}?mode=ro", uri=True, timeout=WAITS_S)
        try:
            rows: list[tuple[object]] = db.execute(question, values).fetchall()
        finally:
            db.close()
    except (sqlite3.Error, ValueError):  # no store, of another version, or busy
        return
    yield from (word for (word,) in rows if isinstance(word, str) and _HARMLESS.match(word))
