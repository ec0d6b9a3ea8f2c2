"""Objects of the query API: outline, transcript, state at a step, and text matches of a run."""

from __future__ import annotations

from typing import Any, Literal

from playhead_receiver.api.models.model import Model, SpanId, TraceId
from playhead_receiver.queries.run_items import RunItem
from playhead_replay.json_objects.recorded import Body, DatabaseItem, NamedState


class Outline(Model):
    """All spans of a run in columns, depth first by start time: row n is item n of each list."""

    run: RunItem
    spans: int
    """Number of spans; exceeds the rows if a limit was given."""
    names: list[str]
    """Distinct span names."""
    span_id: list[SpanId]
    parent: list[int]
    """Row of the parent; -1 for a root."""
    depth: list[int]
    below: list[int]
    """Number of descendants, which follow directly."""
    name: list[int]
    """Index into `names`."""
    start_ns: list[int]
    """Since `started_ns` of the run."""
    duration_ns: list[int]
    """-1 if it has not ended."""
    step: list[int]
    """Step number from 1; 0 if the span is not a step."""
    flags: list[int]
    """1: failed, 2: an attempt of a step."""
    input_tokens: list[int]
    output_tokens: list[int]
    cost_usd: list[float | None]
    """For the tokens reported by the span itself; null without tokens or price."""


class ChunkTimes(Model):
    """Arrival times of response chunks: item n of each list belongs to one span."""

    span_id: list[SpanId]
    """Those of the requested spans that have a recorded response."""
    time_ns: list[list[int]]
    """Since `started_ns` of the run, in order. At most 256, sampled evenly."""


class SpanTexts(Model):
    """What rows show of spans besides their names: item n of each list belongs to one span."""

    span_id: list[SpanId]
    """Those of the requested spans that have arrived and are readable."""
    kind: list[str]
    """model, tool, agent, retrieval or http; empty for other spans."""
    label: list[str]
    """Name of the tool, or method and path of the request; empty for other spans."""
    text: list[str]
    """Answer of the model, or arguments and result of the tool; at most 160 characters."""


class Kept(Model):
    """What the recording of a run contains."""

    level: str | None
    """exchanges, causal or strict; null if there is no tape."""
    not_kept: dict[str, str]
    """Boundaries that are not recorded, and the lowest level that records each."""


class TranscriptItem(Model):
    """A message, system instructions or tool definitions, at first occurrence."""

    step: int
    span_id: SpanId
    lane: str
    """Thread or task that sent it."""
    kind: Literal["system", "tools", "input", "output"]
    role: str
    time_ns: int
    """Start of the step; for an output, its end."""
    parts: list[dict[str, Any]]
    """Parts in the GenAI format; tool definitions for `tools`."""
    input_tokens: int | None
    """Of the call, at its first output; null elsewhere, and if they are unknown."""
    output_tokens: int | None
    cost_usd: float | None


class Transcript(Model):
    """The conversation of a run, without repeated messages."""

    run: str
    trace_id: TraceId
    said: list[TranscriptItem]
    left_out: list[str]
    """Omitted parts, each with the reason."""


class LastSaid(Model):
    """The last messages that a thread or task sent to a model, and the response if received."""

    lane: str
    step: int
    answered: bool
    system_instructions: list[dict[str, Any]]
    input_messages: list[dict[str, Any]]
    output_messages: list[dict[str, Any]]


class FileThen(Model):
    """A file at that step."""

    path: str
    kind: Literal["file", "link", "folder"]
    size_bytes: int
    content: Body | None
    """Null if unknown, not a file, or above 64 KiB."""
    inexact: str | None
    """Why the content is missing or differs; null if exact."""


class CheckpointThen(Model):
    """A checkpoint that had been made by that step."""

    name: str
    """``c1``, as on the command line."""
    kind: str
    """``manual``, ``auto`` or ``framework``."""
    label: str
    step: int
    """The last step that had begun when it was made."""
    time_ns: int
    states: list[str]
    """Names of the states that were reported for it."""


class MomentOfRun(Model):
    """The state of a run after a step."""

    run: str
    trace_id: TraceId
    step: int
    """Last step that had started."""
    steps: int
    time_ns: int
    conversations: list[LastSaid]
    states: list[NamedState]
    files: list[FileThen]
    databases: list[DatabaseItem]
    checkpoints: list[CheckpointThen]
    """Oldest first."""
    stdout: str
    stderr: str
    left_out: list[str]


class TextPlace(Model):
    """An occurrence of a text in a run."""

    step: int
    """0 if the span belongs to no step."""
    span_id: SpanId
    where: str
    """``name``, ``error``, or the kind of message."""
    before: str
    hit: str
    after: str


class TextPlaces(Model):
    """Occurrences of a text in a run, in order."""

    places: list[TextPlace]
    truncated: bool
    """Whether more may exist."""
