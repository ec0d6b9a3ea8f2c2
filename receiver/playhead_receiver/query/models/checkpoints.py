"""Objects of the query API: checkpoints."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from playhead_receiver.query.models.model import Model

CheckpointId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class StoredCheckpoint(Model):
    """A checkpoint, without its state."""

    id: str
    run: str
    """Trace id; empty if it belongs to no run."""
    span: str
    kind: Literal["auto", "manual", "framework", "workspace"]
    parent: str
    """Id of the checkpoint before it, which need not be there; or empty."""
    time_ns: int
    labels: list[str]
    thread: str
    """Conversation of a framework that it belongs to, or empty."""
    name: str
    """What it is called in its thread, and ordered by there."""
    size_bytes: int
    """Of the state, packed as a whole."""
    digest: str
    """Equal for equal states."""


class CheckpointPage(Model):
    """Checkpoints: of a thread by descending name, else those first that were put last."""

    checkpoints: list[StoredCheckpoint]


class ThreadPage(Model):
    """Names of threads, in order."""

    threads: list[str]


class CheckpointDeletion(Model):
    """What is to be deleted: these checkpoints, or those of a run."""

    ids: Annotated[list[CheckpointId], Field(max_length=1000, default_factory=list)]
    run: Annotated[str, Field(pattern="^([0-9a-f]{32})?$")] = ""


class FreedSpace(Model):
    """What a deletion took away."""

    checkpoints: int
    nodes: int
    stored_bytes: int


class Damages(Model):
    """A line for each damaged or missing part of a store of checkpoints."""

    damages: list[str]
