"""Results of commands that change a store, files or a repository."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class PrintedExport(TypedDict):
    """``playhead export``: the file that was written."""

    schema_version: Literal[1]
    run: str
    file: str
    format: Literal["tape", "otlp", "vcr"]
    size_bytes: int


class PrintedImportedRun(TypedDict):
    """A run that a file holds."""

    name: str
    trace_id: str


class PrintedImport(TypedDict):
    """``playhead import``: the runs that the files hold; ``new``: whether any was not there before."""

    schema_version: Literal[1]
    runs: list[PrintedImportedRun]
    new: bool
    facts: int
    spans: int
    rejected: int
    """Spans and facts that were refused."""
    damage: str | None
    """Where the file is damaged; null: it is complete."""
    formats: NotRequired[list[str]]
    """Format of each file: ``tape``, ``otlp``, or that of another tool."""
    not_understood: NotRequired[dict[str, int]]
    """What a file of another tool has that was left out, and how often."""


class PrintedDeletedThings(TypedDict):
    """How much was deleted."""

    runs: int
    spans: int
    facts: int
    blobs: int
    checkpoints: int
    fork_folders: int


class PrintedDeletion(TypedDict):
    """``playhead delete`` and ``playhead gc``: the deleted runs."""

    schema_version: Literal[1]
    runs: NotRequired[list[str]]
    """Names, if the command named the runs."""
    deleted: PrintedDeletedThings
    wiped: bool
    """The deleted data is already overwritten."""


class PrintedPreview(TypedDict):
    """``--dry-run``: names of the runs that would be deleted."""

    schema_version: Literal[1]
    would_delete: list[str]
    above_budget_bytes: NotRequired[int]
    """How much the store is above its budget."""


class PrintedMark(TypedDict):
    """``playhead gc --mark`` and ``--unmark``: the mark that was set or removed."""

    schema_version: Literal[1]
    run: str
    mark: str
    on: bool


class PrintedRedaction(TypedDict):
    """``playhead redact``: the removed values, and the new name of the run."""

    schema_version: Literal[1]
    run: str
    name: str
    places: int
    facts: int
    values: int
    wiped: bool
    """The removed data is already overwritten."""


class PrintedRederivation(TypedDict):
    """``playhead rederive``: number of runs and of derived calls."""

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
    """``playhead restore``: the folder of the restored store."""

    schema_version: Literal[1]
    data_dir: str


class PrintedUnfulfilled(TypedDict):
    """A condition that a run does not meet, and its actual value."""

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
    rebuilt: int
    """Answers that were rebuilt from spans: its replay is ``semantic``, never exact."""
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
    """The result for one golden; ``problem``: why it was not changed."""

    path: str
    updated: bool
    problem: str | None


class PrintedUpdate(TypedDict):
    """``playhead golden update``: the result for each golden."""

    schema_version: Literal[1]
    goldens: list[PrintedRenewedGolden]


class PrintedNote(TypedDict):
    """A note of a person about a run or a step."""

    id: str
    step: int | None
    """Null: the run."""
    span_id: str | None
    text: str
    name: str
    """Name of its score; `note` if it has only a text."""
    value: float | None
    label: str | None
    author: str
    """Empty if it is unknown."""
    time_ns: int


class PrintedNotes(TypedDict):
    """``playhead note``: the notes about a run or a step, by time."""

    schema_version: Literal[1]
    run: str
    notes: list[PrintedNote]
