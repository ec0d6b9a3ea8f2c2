"""The key for digests of redacted data: one per user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def key_of_user(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the key of this user's digests, creating it if needed; None where it cannot be stored."""
    state = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(state, "playhead", "redaction.key")
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(32))
        key = path.read_bytes()
    except OSError:
        return None
    return key if len(key) == 32 else None
