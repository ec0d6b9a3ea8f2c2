"""Objects of the query API: checkpoints."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from playhead_receiver.api.models.model import Model
from playhead_replay.json_objects.recorded import StoredCheckpoint

CheckpointId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class CheckpointPage(Model):
    """Checkpoints: of a thread by descending name, otherwise newest first."""

    checkpoints: list[StoredCheckpoint]


class StateDifference(Model):
    """A difference of two states."""

    path: list[str | int]
    """Keys and positions from the state to the value."""
    kind: Literal["added", "removed", "changed"]
    before: Any
    after: Any


class StateDifferences(Model):
    """The differences of two states; ``count``: of all, of which at most 10,000 are listed."""

    count: int
    differences: list[StateDifference]


class ThreadPage(Model):
    """Thread names, sorted."""

    threads: list[str]


class CheckpointDeletion(Model):
    """Checkpoints to delete: by id, or all of a run."""

    ids: Annotated[list[CheckpointId], Field(max_length=1000, default_factory=list)]
    run: Annotated[str, Field(pattern="^([0-9a-f]{32})?$")] = ""


class FreedSpace(Model):
    """Space that a deletion freed."""

    checkpoints: int
    nodes: int
    stored_bytes: int


class Damages(Model):
    """One line for each damaged or missing part of the checkpoint store."""

    damages: list[str]
