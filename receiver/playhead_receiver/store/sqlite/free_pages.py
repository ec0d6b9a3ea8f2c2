"""Gives empty pages of a file of SQLite back to the file system."""

from __future__ import annotations

import apsw

FREE_SHARE = 0.1
"""Share of a file's pages that may lie empty before some are given back."""
VACUUMED_PAGES = 1024
"""How many are given back at a time."""


def has_room(db: apsw.Connection) -> bool:
    """Whether much of the file is empty."""
    return int(db.pragma("freelist_count")) > int(db.pragma("page_count")) * FREE_SHARE


def give_back(db: apsw.Connection) -> None:
    """Give some of what is empty back to the file system. For the writer."""
    list(db.execute(f"PRAGMA incremental_vacuum({VACUUMED_PAGES})"))  # each row that is read is a page
