"""Claims of effects, in one SQLite file or at a receiver: see `playhead_core.claims`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_checkpoint.claims.sqlite import FILE, SqliteClaims

if TYPE_CHECKING:
    from playhead_checkpoint.claims.remote import RemoteClaims


def open_claims(
    folder: str, endpoint: str = "", token: str = "", certificate: str = ""
) -> SqliteClaims | RemoteClaims:
    """Open the claims in a data folder, or of a receiver. The entry point ``playhead_claims``."""
    if not endpoint:
        return SqliteClaims(folder)
    from playhead_checkpoint.claims.remote import RemoteClaims  # few programs use remote claims

    return RemoteClaims(endpoint, token, certificate)


def forget_claims(folder: Path, trace_ids: Iterable[bytes]) -> None:
    """Delete the claims of runs in a data folder, if it has any."""
    if not (folder / FILE).exists():
        return
    claims = SqliteClaims(folder)
    try:
        for trace_id in trace_ids:
            claims.delete(trace_id.hex())
    finally:
        claims.close()
