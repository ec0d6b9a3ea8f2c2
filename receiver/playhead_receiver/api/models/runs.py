"""Objects of the query API: runs, their trees, search hits, artifacts, conversations, statistics."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.api.models.model import Model, SpanId, Status, TraceId
from playhead_receiver.queries.run_items import RunItem
from playhead_receiver.queries.search_hits import SearchHit
from playhead_replay.json_objects.findings import (
    DecisionItem,
    FailureItem,
    LoopItem,
    ReportItem,
    ScoreItem,
    SessionItem,
    SignalItem,
    ToolCallItem,
    TransitionItem,
)
from playhead_replay.json_objects.recorded import ArtifactItem


class RunPage(Model):
    """A page of runs."""

    runs: list[RunItem]
    next: str | None
    """`after` of the next page; null at the end."""


class SpanLine(Model):
    """A span in the tree of a run, without its content."""

    span_id: SpanId
    parent_id: SpanId | None
    depth: int
    children: int
    descendants: int
    failures: int
    name: str
    kind: int
    started_ns: int
    ended_ns: int | None
    failed: bool
    error: str | None
    operation: str
    tool: str
    model: str
    method: str
    """HTTP method; like URL and status code, empty or null for other spans."""
    url: str
    status_code: int | None
    step: bool
    """Whether it counts as a step."""
    attempt: bool
    """Whether it is an attempt of a step."""
    input_tokens: int
    output_tokens: int


class RunTree(Model):
    """A run and a page of its span tree, depth first by start time."""

    run: RunItem
    total: int
    """Number of spans in the requested part."""
    offset: int
    spans: list[SpanLine]
    next: int | None
    """`offset` of the next page; null at the end."""


class Marks(Model):
    """The marks of a run."""

    trace_id: TraceId
    marks: list[str]


class Removed(Model):
    """What was deleted."""

    runs: int
    spans: int
    facts: int
    blobs: int
    checkpoints: int
    wiped: bool


class SearchPage(Model):
    """Search hits by run, newest first. A text is reported once per run."""

    hits: list[SearchHit]
    behind: int
    """Batches that are not indexed yet."""


class Artifacts(Model):
    """The artifacts of a run, by time."""

    artifacts: list[ArtifactItem]


class RunToolCalls(Model):
    """The tool calls of a run, in order of the steps that asked for them."""

    tool_calls: list[ToolCallItem]


class RunFailures(Model):
    """The failures of a run, in order of steps, its loops and signals."""

    failures: list[FailureItem]
    loops: list[LoopItem]
    signals: list[SignalItem]
    status_reason: str | None
    """Why a run with status success is not a plain one: `cut off: length`, `content filter`."""
    unrecorded: dict[str, list[str]]
    """Hosts whose traffic was not recorded, by library. Empty name: the program's own modules."""


class RunReports(Model):
    """What the programs of a run reported about themselves, by time."""

    reports: list[ReportItem]


class RunDecisions(Model):
    """The decisions of a run, by time."""

    decisions: list[DecisionItem]


class RunTransitions(Model):
    """The session of a run, and the states that it passes."""

    session: SessionItem
    transitions: list[TransitionItem]


class RunFindings(RunFailures, RunDecisions, RunTransitions, RunReports):
    """What a run means: everything that its programs reported or that is derived from its steps."""


class RunScores(Model):
    """Results of evaluations of a run, by time."""

    scores: list[ScoreItem]


class NoteOrder(BaseModel):
    """A note about a run or a step: a text, a score, or both."""

    model_config = ConfigDict(extra="forbid")
    step: Annotated[int | None, Field(ge=1, le=100_000_000, description="Null: the run.")] = None
    text: Annotated[str, Field(max_length=20_000)] = ""
    name: Annotated[
        str, Field(max_length=200, description="Name of the score; `correct` with a label.")
    ] = ""
    value: Annotated[float | None, Field(allow_inf_nan=False)] = None
    label: Annotated[
        Literal["right", "wrong"] | None, Field(description="Marks the step as right or wrong.")
    ] = None
    author: Annotated[
        str, Field(max_length=200, description="Used if the caller's token has no name.")
    ] = ""


class NoteItem(Model):
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
    own: bool
    """Whether the caller may withdraw it."""


class RunNotes(Model):
    """The notes about a run, by time."""

    notes: list[NoteItem]


class Conversation(Model):
    """The runs of one conversation."""

    id: str
    agent: str
    runs: int
    started_ns: int
    last_ns: int
    status: Status
    """Of its last run."""
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Null if no price is known."""
    unpriced_runs: int
    """Runs with calls of unknown price, which the cost leaves out."""


class ConversationPage(Model):
    """Conversations, most recent first."""

    conversations: list[Conversation]
    truncated: bool


class FacetValue(Model):
    """A value that runs have in common."""

    value: str
    runs: int


class Facets(Model):
    """How many runs have which values, of the runs that a list with the same query shows."""

    runs: int
    facets: dict[str, list[FacetValue]]
    """By field of the query language; the most frequent values first. Empty values are left out."""
    truncated: bool
    """Whether more runs match than were counted."""
