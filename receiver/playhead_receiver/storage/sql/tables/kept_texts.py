"""Looks up stored texts by their digests."""

from __future__ import annotations

from typing import Any

from playhead_core.errors import PlayheadError
from playhead_core.facts import digest_of
from playhead_receiver.storage.content.texts import Texts
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.frames import frames_at


def stored_text(db: Db, digest: bytes) -> int | None:
    """The address of the text with a digest; None if it is not stored, or differs from the digest."""
    found: Any = db.execute("SELECT address FROM text WHERE digest = ?", (digest,)).get
    if found is None:
        return None
    try:
        whole = Texts(lambda id: frames_at(db, id)).text(int(found))
    except PlayheadError:  # it has been deleted, or is damaged
        return None
    return int(found) if digest_of(whole)[: len(digest)] == digest else None
