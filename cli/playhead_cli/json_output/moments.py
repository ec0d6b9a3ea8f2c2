"""A moment of a run, and what differs between two."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from playhead_cli.json_output.files import PrintedFile


class PrintedOutput(TypedDict):
    """Bytes as text: as they are where they are UTF-8, else as base64."""

    encoding: Literal["utf-8", "base64"]
    text: str


class PrintedLastMessages(TypedDict):
    """The last messages that a thread or task had sent to a model."""

    lane: str
    step: int
    answered: bool
    """Whether the answer had come; else there are no output messages."""
    system_instructions: list[Any]
    input_messages: list[Any]
    output_messages: list[Any]
    tool_definitions: list[Any]


class PrintedState(TypedDict):
    """A state that the program had reported."""

    name: str
    step: int
    value: Any
    """Null where content is not recorded."""
    unkept: list[str]
    """What of it could not be kept: its path and the class of what is there."""


class PrintedFileThen(PrintedFile):
    """A file, link or folder below the folder of the run, with its content."""

    data: PrintedOutput | None
    """Null: not known, no file, or larger than 1 MiB."""


class PrintedTable(TypedDict):
    """A table of a database as it was."""

    name: str
    columns: list[str]
    rows: list[list[Any]]
    """The first 100, or with ``--all`` 10,000. Bytes are ``{"base64": …}``; longer values are cut."""
    row_count: int | None
    """All rows; null where they were not counted."""
    left_out: str | None


class PrintedDatabase(TypedDict):
    """A SQLite database as it was: what had been committed when the next step began."""

    path: str
    tables: list[PrintedTable]
    inexact: str | None
    """Why its rows are not known, or not as they were; null: they are exact."""


class PrintedRunMoment(TypedDict):
    """A moment of a run."""

    schema_version: int
    run: str
    trace_id: str
    step: int
    """The last step that had begun; 0: before the first."""
    time_ns: int
    conversations: list[PrintedLastMessages]
    states: list[PrintedState]
    files: list[PrintedFileThen]
    databases: list[PrintedDatabase]
    stdout: PrintedOutput | None
    stderr: PrintedOutput | None
    left_out: list[str]
    """What the level of the recording did not keep, in sentences."""


class PrintedChange(TypedDict):
    """One thing that differs, with its first difference."""

    kind: str
    """state, conversation, file, database or printed."""
    name: str
    path: str
    left: str
    right: str


class PrintedMomentChanges(TypedDict):
    """The changes between two moments."""

    schema_version: int
    left: str
    right: str
    changes: list[PrintedChange]


class PrintedStoredState(TypedDict):
    """Where the state of a checkpoint is kept besides: in a store of checkpoints."""

    id: str
    parent: str | None
    """Id of the one before it."""
    thread: str
    name: str
    """What the framework calls it."""
    size_bytes: int
    digest: str
    copied: bool
    """Whether the tape has a copy of it."""


class PrintedCheckpoint(TypedDict):
    """A place to which a run can be taken back."""

    name: str
    """``c1``: a POINT."""
    kind: str
    """manual, auto or framework."""
    label: str | None
    step: int
    """The last step that had begun; 0: before the first."""
    span_id: str | None
    time_ns: int
    states: list[str]
    """Names of the states that were reported for it."""
    stored: PrintedStoredState | None
    """Null: it is only a place on the tape."""


class PrintedCheckpoints(TypedDict):
    """The checkpoints of a run, in order of time."""

    schema_version: int
    run: str
    trace_id: str
    checkpoints: list[PrintedCheckpoint]


class PrintedRestored(TypedDict):
    """The states of a run, put into a new store of checkpoints."""

    schema_version: int
    run: str
    file: str
    checkpoints: int
    left_out: list[str]
    """What could not be put, and why: a sentence each."""


class PrintedFact(TypedDict):
    """A fact of a tape, a line each."""

    schema_version: int
    run: str
    instance: str
    seq: int
    time_ns: int
    name: str
    lane: str
    exchange: str | None
    """Kind and number in its lane."""
    step: int | None
    size_bytes: int | None
    """Of its content; null: it has none."""
    attributes: dict[str, Any]
