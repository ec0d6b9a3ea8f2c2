"""Audit log entries of commands that access the data folder without a receiver."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from playhead_cli.session.session import Session

if TYPE_CHECKING:
    from playhead_receiver.auth.audit import Action


def note(session: Session, by: str, action: Action, subject: str) -> None:
    """Write an action of ``by`` to the audit log, if the folder has tokens. `StoreUnavailable`.

    Does nothing if the folder is not writable, as with a copy on a read-only disk.
    """
    from playhead_receiver.auth import Audit, TokenBook
    from playhead_receiver.auth.database import AccessFile

    if not os.access(session.data_dir, os.W_OK):
        return
    file = AccessFile(session.data_dir)
    try:
        if TokenBook(file).any_live():
            Audit(file).note("", by, "", action, subject)
    finally:
        file.close()
