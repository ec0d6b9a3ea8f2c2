"""Opens the checkpoint store that a path or an URL names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_core.errors import StoreUnavailable, UsageError

if TYPE_CHECKING:
    from playhead_checkpoint.store.protocol import CheckpointStore

_HINT = "the path of a file, http://HOST:4319 of a receiver, or postgresql://USER@HOST/DATABASE"


def open_checkpoints(where: str | os.PathLike[str], *, token: str | None = None) -> CheckpointStore:
    """Open a file, a receiver's store or a database, and check that it answers.

    ``token``: for a receiver; by default ``PLAYHEAD_TOKEN``. `UsageError` if ``where`` names none of
    these; `StoreUnavailable` if it cannot be used.
    """
    name = os.fspath(where)
    scheme, separator, _ = name.partition("://")
    if separator and scheme in ("http", "https"):
        from playhead_checkpoint.store.remote import RemoteCheckpoints

        remote = RemoteCheckpoints(
            name, token=os.environ.get("PLAYHEAD_TOKEN", "") if token is None else token
        )
        try:
            remote.checkpoints(limit=1)
            remote.note(bytes(16), {})  # stores nothing; needs the scope of a put
        except BaseException:
            remote.close()
            raise
        return remote
    if separator and scheme in ("postgres", "postgresql"):
        from playhead_checkpoint.store.postgres import PostgresCheckpoints

        return PostgresCheckpoints(name)
    if separator or not name.strip() or name.startswith((":", "file:", "sqlite:")):
        raise UsageError(f"{name!r:.200} is no checkpoint store", hint=_HINT)
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it", hint=_HINT)
    if not path.parent.is_dir():
        raise StoreUnavailable(f"{path} cannot be made: its folder does not exist")
    from playhead_checkpoint.store.sqlite import SqliteCheckpoints

    return SqliteCheckpoints(path)
