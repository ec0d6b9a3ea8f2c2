"""Objects of the query API: a run as it is read. Outline, transcript, one moment, places of a text."""

from __future__ import annotations

from typing import Any, Literal

from playhead_receiver.query.models.model import Model, SpanId, TraceId
from playhead_receiver.query.models.runs import RunItem
from playhead_receiver.query.models.spans import Body


class Outline(Model):
    """All spans of a run in columns, depth first in order of start: row n is place n of each list."""

    run: RunItem
    spans: int
    """Number of spans; more than rows where a limit was given."""
    names: list[str]
    """Each name of a span once."""
    span_id: list[SpanId]
    parent: list[int]
    """Row of the parent; -1 for a root."""
    depth: list[int]
    below: list[int]
    """Number of spans below, which follow at once."""
    name: list[int]
    """Place in `names`."""
    start_ns: list[int]
    """Since `started_ns` of the run."""
    duration_ns: list[int]
    """-1: it has not ended."""
    step: list[int]
    """Number of the step, from 1; 0 for a span that is none."""
    flags: list[int]
    """1: failed, 2: an attempt of a step."""
    input_tokens: list[int]
    output_tokens: list[int]
    cost_usd: list[float | None]
    """Of the tokens that the span itself reports; null where there are none, or no price is known."""


class ChunkTimes(Model):
    """When the pieces of answers came: place n of each list is of one span."""

    span_id: list[SpanId]
    """Of the spans that were asked for, those with an answer on the tape."""
    time_ns: list[list[int]]
    """Since `started_ns` of the run, in order; of more than 256 pieces so many, evenly chosen."""


class Kept(Model):
    """What a run keeps of what its program did."""

    level: str | None
    """exchanges, causal or strict; null where no tape was recorded."""
    not_kept: dict[str, str]
    """Boundaries that the recording lacks, and the lowest level that keeps each."""


class TranscriptItem(Model):
    """A message, the instructions of the system, or the definitions of tools, where they first came."""

    step: int
    span_id: SpanId
    lane: str
    """Who asked: a thread or task."""
    kind: Literal["system", "tools", "input", "output"]
    role: str
    time_ns: int
    """When the step began; for an output when it ended."""
    parts: list[dict[str, Any]]
    """As the GenAI conventions have them; definitions of tools for `tools`."""


class Transcript(Model):
    """The conversation of a run, each message once."""

    run: str
    trace_id: TraceId
    said: list[TranscriptItem]
    left_out: list[str]
    """What was not kept or cannot be read, in sentences."""


class LastSaid(Model):
    """The last messages that a thread or task had sent to a model, and the answer if it had come."""

    lane: str
    step: int
    answered: bool
    system_instructions: list[dict[str, Any]]
    input_messages: list[dict[str, Any]]
    output_messages: list[dict[str, Any]]


class NamedState(Model):
    """A state that the program had reported."""

    name: str
    step: int
    value: Any
    """Null where its content is not recorded or cannot be read."""
    unkept: list[str]
    """What of it could not be kept: its path and the class of what is there."""


class FileThen(Model):
    """A file as it was."""

    path: str
    kind: Literal["file", "link", "folder"]
    size_bytes: int
    content: Body | None
    """Null where it is not known, no file, or longer than 64 KiB."""
    inexact: str | None
    """Why its content is not known, or not as it was; null: it is exact."""


class TableThen(Model):
    """A table of a database as it was."""

    name: str
    columns: list[str]
    rows: list[list[Any]]
    """The first rows. Bytes are ``{"base64": …}``; a value is cut at 4,096 characters or bytes."""
    row_count: int | None
    """All rows; null where they were not counted."""
    left_out: str | None
    """What cannot be shown, and why."""


class DatabaseOfMoment(Model):
    """A SQLite database as it was: what had been committed when the next step began."""

    path: str
    tables: list[TableThen]
    inexact: str | None
    """Why its rows are not known, or not as they were; null: they are exact."""


class MomentOfRun(Model):
    """A moment of a run."""

    run: str
    trace_id: TraceId
    step: int
    """The last step that had begun."""
    steps: int
    time_ns: int
    conversations: list[LastSaid]
    states: list[NamedState]
    files: list[FileThen]
    databases: list[DatabaseOfMoment]
    stdout: str
    stderr: str
    left_out: list[str]


class TextPlace(Model):
    """Where a text occurs in a run."""

    step: int
    """0: in a span that belongs to no step."""
    span_id: SpanId
    where: str
    """``name``, ``error``, or the kind of what was said."""
    before: str
    hit: str
    after: str


class TextPlaces(Model):
    """Where a text occurs in a run, in the order of the run."""

    places: list[TextPlace]
    truncated: bool
    """Whether there may be more."""
