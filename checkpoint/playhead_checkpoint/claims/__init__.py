"""Claims of effects in one SQLite file: see `playhead_semconv.claims`."""

from __future__ import annotations

from playhead_checkpoint.claims.sqlite import SqliteClaims


def open_claims(folder: str) -> SqliteClaims:
    """Open the claims in a data folder. The entry point ``playhead_claims``."""
    return SqliteClaims(folder)
