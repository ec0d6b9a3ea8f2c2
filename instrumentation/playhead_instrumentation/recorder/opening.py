"""What a driver is made of: the session says it, and who opens the driver reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import msgspec

from playhead_core.tape.protocols import Sink
from playhead_instrumentation.recorder.allowed import NOTHING, Allowed
from playhead_instrumentation.redaction import Redactor

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Plan

FILE_LIMIT_BYTES = 16 << 20
"""Default limit: of a larger file only the digest is recorded."""


def _to_nobody(text: str) -> None:
    """Discard the message."""


class Opening(msgspec.Struct, frozen=True):
    """What a driver is made of, besides its tape.

    The session makes one at its start and keeps it: a fork of a replay is opened with the same.
    """

    sink: Sink
    """Where the facts go."""
    redactor: Redactor
    """Takes credentials out of what goes there."""
    level: str = "causal"
    """Of a recording: ``exchanges``, ``causal`` or ``strict``. A replay takes that of its tape."""
    boundaries: Collection[str] = ()
    """Names of the boundaries of the recording that is made or played."""
    file_limit_bytes: int = FILE_LIMIT_BYTES
    """Of a larger file the digest is kept, not the content."""
    hidden: Collection[str] = ()
    """Folders in which no child changes anything."""
    allowed: Allowed = NOTHING
    """What a replay may do for real."""
    plan: Plan | None = None
    """Of a fork or a resume: where it parts from its tape. None: a recording or a replay."""
    say: Callable[[str], None] = _to_nobody
    """Told where a fork parts from its tape."""
