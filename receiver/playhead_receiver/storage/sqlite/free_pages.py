"""Returns free pages of an SQLite file to the file system."""

from __future__ import annotations

import apsw

FREE_SHARE = 0.1
"""Share of a file's pages that may be free before some are returned."""
VACUUMED_PAGES = 1024
"""Pages returned at a time."""


def has_room(db: apsw.Connection) -> bool:
    """Whether more than `FREE_SHARE` of the file is free."""
    return int(db.pragma("freelist_count")) > int(db.pragma("page_count")) * FREE_SHARE


def give_back(db: apsw.Connection) -> None:
    """Return some free pages to the file system. For the writer."""
    list(db.execute(f"PRAGMA incremental_vacuum({VACUUMED_PAGES})"))  # each row read frees one page
