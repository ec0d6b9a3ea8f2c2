"""Objects of the query API: what a run made."""

from __future__ import annotations

from typing import Literal

from playhead_receiver.api.models.model import Model


class ArtifactItem(Model):
    """Something that a run made, or received in a message."""

    name: str
    made: Literal["named", "file", "message"]
    """`named`: by `playhead.artifact`; `file`: written below the run's folder; `message`: in one."""
    media_type: str
    """Media type as reported by the program or provider; may be empty."""
    size_bytes: int
    digest: str
    """BLAKE3 of the content, in hex; empty if it was not kept."""
    span_id: str
    """Span that made it; empty if unknown."""
    step: int | None
    time_ns: int
    inexact: str | None
    """Why the content is missing or differs; null if exact."""


class Artifacts(Model):
    """The artifacts of a run, by time."""

    artifacts: list[ArtifactItem]
