"""The state of a run at a step, and differences between two."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from playhead_cli.json_output.files import PrintedFile
from playhead_replay.json_objects.recorded import DatabaseItem, NamedState, StoredCheckpoint


class PrintedOutput(TypedDict):
    """Bytes as text: unchanged if they are UTF-8, else as base64."""

    encoding: Literal["utf-8", "base64"]
    text: str


class PrintedLastMessages(TypedDict):
    """The last messages that a thread or task had sent to a model."""

    lane: str
    step: int
    answered: bool
    """Whether the response had arrived; else there are no output messages."""
    system_instructions: list[Any]
    input_messages: list[Any]
    output_messages: list[Any]
    tool_definitions: list[Any]


class PrintedFileThen(PrintedFile):
    """A file, link or folder below the folder of the run, with its content."""

    data: PrintedOutput | None
    """Null: not known, no file, or larger than 1 MiB."""


class PrintedRunMoment(TypedDict):
    """``playhead state``: the state of a run at a step."""

    schema_version: int
    run: str
    trace_id: str
    step: int
    """The last step that had begun; 0: before the first."""
    time_ns: int
    conversations: list[PrintedLastMessages]
    states: list[NamedState]
    files: list[PrintedFileThen]
    databases: list[DatabaseItem]
    stdout: PrintedOutput | None
    stderr: PrintedOutput | None
    left_out: list[str]
    """Data that the recording level does not contain, in sentences."""


class PrintedChange(TypedDict):
    """One thing that differs, with its first difference."""

    kind: str
    """state, conversation, file, database or printed."""
    name: str
    path: str
    left: str
    right: str


class PrintedMomentChanges(TypedDict):
    """``playhead diff --state``: the changes between the states at two points."""

    schema_version: int
    left: str
    right: str
    changes: list[PrintedChange]


class PrintedStoredState(TypedDict):
    """The state of a checkpoint in the program's checkpoint store."""

    id: str
    parent: str | None
    """Id of the one before it."""
    thread: str
    name: str
    """The framework's name for it."""
    size_bytes: int
    digest: str
    copied: bool
    """Whether the tape has a copy of it."""


class PrintedCheckpoint(TypedDict):
    """A point to which a run can be rolled back."""

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
    """``playhead checkpoints``: the checkpoints of a run, in order of time."""

    schema_version: int
    run: str
    trace_id: str
    checkpoints: list[PrintedCheckpoint]
    sent: list[StoredCheckpoint]
    """Checkpoints in the receiver's store that no tape of the run reports, in order of time."""


class PrintedRestored(TypedDict):
    """``playhead checkpoints --into``: states of a run, written to a new checkpoint store."""

    schema_version: int
    run: str
    file: str
    checkpoints: int
    left_out: list[str]
    """States that could not be written, and why: a sentence each."""


class PrintedFact(TypedDict):
    """``playhead events``: a fact of a tape, one object per line."""

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
