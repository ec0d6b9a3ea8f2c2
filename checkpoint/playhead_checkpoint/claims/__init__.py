"""Claims of effects in one SQLite file: see `playhead_semconv.claims`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from playhead_checkpoint.claims.sqlite import FILE, SqliteClaims


def open_claims(folder: str) -> SqliteClaims:
    """Open the claims in a data folder. The entry point ``playhead_claims``."""
    return SqliteClaims(folder)


def forget_claims(folder: Path, trace_ids: Iterable[bytes]) -> None:
    """Delete what runs have claimed in a data folder, if anything was claimed there."""
    if not (folder / FILE).exists():
        return
    claims = SqliteClaims(folder)
    try:
        for trace_id in trace_ids:
            claims.delete(trace_id.hex())
    finally:
        claims.close()
