"""What commands have changed: in a store, in files, in a repository."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class PrintedExport(TypedDict):
    """``playhead export``: the file that was written."""

    schema_version: Literal[1]
    run: str
    file: str
    format: Literal["tape", "otlp"]
    size_bytes: int


class PrintedImportedRun(TypedDict):
    """A run that a file holds."""

    name: str
    trace_id: str


class PrintedImport(TypedDict):
    """``playhead import``: the runs that the file holds; ``new``: whether any was not there before."""

    schema_version: Literal[1]
    runs: list[PrintedImportedRun]
    new: bool
    facts: int
    spans: int
    rejected: int
    """Spans and facts that were refused."""
    damage: str | None
    """Where the file is torn; null: it is whole."""


class PrintedDeletedThings(TypedDict):
    """How much was deleted."""

    runs: int
    spans: int
    facts: int
    blobs: int
    checkpoints: int
    fork_folders: int


class PrintedDeletion(TypedDict):
    """``playhead delete`` and ``playhead gc``: what was deleted, and whether it is overwritten."""

    schema_version: Literal[1]
    runs: NotRequired[list[str]]
    """Names, where they were named."""
    deleted: PrintedDeletedThings
    wiped: bool
    """What was deleted is overwritten already."""


class PrintedPreview(TypedDict):
    """``--dry-run``: names of the runs that would be deleted."""

    schema_version: Literal[1]
    would_delete: list[str]
    above_budget_bytes: NotRequired[int]
    """How much the store is above its budget."""


class PrintedMark(TypedDict):
    """``playhead gc --mark``: the mark that a run has now, or has no more."""

    schema_version: Literal[1]
    run: str
    mark: str
    on: bool


class PrintedRedaction(TypedDict):
    """``playhead redact``: what was taken out, and the name that the run has now."""

    schema_version: Literal[1]
    run: str
    name: str
    places: int
    facts: int
    values: int
    wiped: bool
    """What was taken out is overwritten already."""


class PrintedRederivation(TypedDict):
    """``playhead rederive``: how many runs were looked at, and how many calls were found."""

    schema_version: Literal[1]
    runs: int
    calls: int


class PrintedBackup(TypedDict):
    """``playhead backup``: the copy."""

    schema_version: Literal[1]
    folder: str
    size_bytes: int
    missing_blobs: int
    """Bodies that the store refers to and does not have."""


class PrintedRestoration(TypedDict):
    """``playhead restore``: where the store is now."""

    schema_version: Literal[1]
    data_dir: str


class PrintedUnfulfilled(TypedDict):
    """A condition that a run does not fulfil, and what it has instead."""

    condition: str
    found: str


class PrintedGolden(TypedDict):
    """``playhead golden add``: the golden that was written."""

    schema_version: Literal[1]
    path: str
    size_bytes: int
    redacted: int
    """Values that were redacted."""
    edited: list[str]
    """Parts that an edit at a fork answered, not the program."""
    unfulfilled: list[PrintedUnfulfilled]


class PrintedGoldenItem(TypedDict):
    """A golden in a list; ``problem``: why it cannot be read."""

    name: str
    path: str
    size_bytes: int
    program: str | None
    steps: int | None
    description: str
    expect: list[str]
    problem: str | None


class PrintedGoldens(TypedDict):
    """``playhead golden ls``: the goldens of a folder."""

    schema_version: Literal[1]
    goldens: list[PrintedGoldenItem]


class PrintedRemoval(TypedDict):
    """``playhead golden rm``: the files that were removed."""

    schema_version: Literal[1]
    removed: list[str]


class PrintedRenewedGolden(TypedDict):
    """What became of a golden; ``problem``: why it was left as it is."""

    path: str
    updated: bool
    problem: str | None


class PrintedUpdate(TypedDict):
    """``playhead golden update``: what became of each golden."""

    schema_version: Literal[1]
    goldens: list[PrintedRenewedGolden]
