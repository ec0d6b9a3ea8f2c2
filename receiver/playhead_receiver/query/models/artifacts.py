"""Objects of the query API: what a run made."""

from __future__ import annotations

from typing import Literal

from playhead_receiver.query.models.model import Model


class ArtifactItem(Model):
    """Something that a run made, or was given in a message."""

    name: str
    made: Literal["named", "file", "message"]
    """`named`: by `playhead.artifact`; `file`: written below the run's folder; `message`: in one."""
    media_type: str
    """As the program or the provider says; empty where nobody does."""
    size_bytes: int
    digest: str
    """BLAKE3 of the content, hexadecimal; empty where it was not kept."""
    span_id: str
    """The span that made it; empty where none is known."""
    step: int | None
    time_ns: int
    inexact: str | None
    """Why its content is not known, or not as it was; null: it is exact."""


class Artifacts(Model):
    """What a run made, in order of time."""

    artifacts: list[ArtifactItem]
