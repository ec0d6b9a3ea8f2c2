"""A fully indexed store, for commands that search text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead_cli.session.session import Session
from playhead_core.errors import RunUnknown, StoreBusy

if TYPE_CHECKING:
    from playhead_receiver.storage.api.search import Search


def searchable(session: Session) -> Search:
    """The store; its index is completed first if no receiver writes to it.

    `RunUnknown` if there is none.
    """
    from playhead_receiver.storage import open_store
    from playhead_receiver.storage.api.offers import needed
    from playhead_receiver.storage.api.search import Search
    from playhead_receiver.storage.content.references import References

    if session.nothing_kept:
        raise RunUnknown(f"nothing is recorded in {session.data_dir}", hint="playhead record SCRIPT")
    references = References.named(session.settings.references)
    try:
        store = needed(open_store(session.store, references=references), Search)
    except StoreBusy:  # the receiver maintains the index
        return needed(open_store(session.store, read_only=True, references=references), Search)
    while store.index():
        if left := store.lag().bundles:
            session.progress(f"{left} groups of spans to go")
    return store
