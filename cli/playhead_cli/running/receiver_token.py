"""The token with which this user delivers to the receiver of the data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead_receiver.system.defaults import data_dir

if TYPE_CHECKING:
    from playhead_core.settings import Settings
    from playhead_receiver.system.writer_lock import Listening

DELIVERING = ("ingest", "admin")
"""Scopes that allow to deliver."""


def token_for(settings: Settings, receiver: Listening) -> str:
    """The token of the settings if it may deliver; else the key of ``receiver``, empty if it needs none.

    A token for reading may be set in the same shell: it does not keep what is recorded here from the
    receiver.
    """
    if not settings.token:
        return receiver.key
    from playhead_receiver.auth import TokenBook  # imported late: mostly no token is set
    from playhead_receiver.auth.database import AccessFile

    file = AccessFile(data_dir(settings))
    try:
        token = TokenBook(file).find(settings.token)
    finally:
        file.close()
    if token is None:
        return receiver.key or settings.token
    return settings.token if set(DELIVERING).intersection(token.scopes) else receiver.key
