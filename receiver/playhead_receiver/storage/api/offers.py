"""What an engine offers besides reading and committing: a store may be any of the protocols here."""

from __future__ import annotations

import re
from typing import TypeVar

from playhead_receiver.storage.api.store import Store

T = TypeVar("T")


def offered(store: Store, part: type[T]) -> T | None:
    """``store`` as one of the protocols, such as `Search`; None if its engine does not offer it."""
    return store if isinstance(store, part) else None


def needed(store: Store, part: type[T]) -> T:
    """``store`` as one of the protocols. `NotOffered`, which says what is done instead."""
    if isinstance(store, part):
        return store
    raise store.lacking(part)


def words_of(part: type) -> str:
    """The name of a protocol in words: ``frame compaction``."""
    return " ".join(re.findall("[A-Z][a-z]*", part.__name__)).lower()
