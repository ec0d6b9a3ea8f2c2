"""The files of a run: its working folder at a step, and its artifacts."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from playhead_replay.json_objects.recorded import ArtifactItem


class PrintedSnapshot(TypedDict):
    """A snapshot of the working folder."""

    label: str
    """``start``, ``end``, ``step``, or the program's own word."""
    begun_ns: int
    ended_ns: int
    files: int
    size_bytes: int
    changed: int
    """Paths that differ from the snapshot before."""
    kept_bytes: int
    """Content that it added to the tape."""


class PrintedFile(TypedDict):
    """A file, link or folder."""

    path: str
    kind: Literal["file", "link", "folder"]
    mode: int
    """Permissions, as ``st_mode`` has them."""
    size_bytes: int
    digest: str
    """BLAKE3 of the content, hex; empty if unknown."""
    target: NotRequired[str]
    """Of a link."""
    inexact: str | None
    """Why its content is not known, or not as it was; null: it is exact."""


class PrintedFileChange(TypedDict):
    """How a path differs."""

    path: str
    what: Literal["added", "removed", "changed", "mode", "unknown"]
    """``mode``: its permissions alone; ``unknown``: its content is not known on both sides."""
    before: PrintedFile | None
    after: PrintedFile | None


class PrintedWorkspace(TypedDict):
    """``playhead workspace``: the working folder of a run at a step."""

    schema_version: Literal[1]
    run: str
    step: int
    """The last step that had begun; 0: before the first."""
    time_ns: int
    snapshot: str | None
    """Label of the snapshot that it rests on; null: it is known from the tape alone."""
    exact: bool
    """Whether every file is known to the byte."""
    notes: list[str]
    """Notes on unknown files."""
    files: list[PrintedFile]
    snapshots: list[PrintedSnapshot]
    to: NotRequired[str]
    """The folder to which the files were written."""
    missing: NotRequired[list[str]]
    """Files that could not be written unchanged, and why."""


class PrintedWorkspaceDiff(TypedDict):
    """``playhead workspace --diff``: changed files between two steps."""

    schema_version: Literal[1]
    run: str
    since_step: int
    """The last step that had begun at the first point; 0: before the first step."""
    since_ns: int
    step: int
    """The same at the second point."""
    time_ns: int
    exact: bool
    notes: list[str]
    changes: list[PrintedFileChange]


class PrintedArtifacts(TypedDict):
    """``playhead artifacts``: the artifacts of a run."""

    schema_version: Literal[1]
    run: str
    artifacts: list[ArtifactItem]


class PrintedTakenArtifact(TypedDict):
    """``playhead artifacts --get``: the file into which one was written."""

    schema_version: Literal[1]
    run: str
    artifact: ArtifactItem
    file: str
