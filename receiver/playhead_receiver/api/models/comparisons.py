"""Objects of the query API: two runs, compared step by step."""

from __future__ import annotations

from playhead_receiver.api.models.model import Model, Status


class DiffSide(Model):
    """One of two compared runs."""

    run: str
    """Its name."""
    status: Status
    steps: int
    errors: int
    """Steps that failed."""
    input_tokens: int
    output_tokens: int
    duration_ns: int | None
    """Null while the run is in progress."""
    cost_usd: float | None
    """Null if no price is known."""


class DifferenceItem(Model):
    """A difference between two runs."""

    kind: str
    """`request`, `response`, `error`, `state`, `report`; of a whole step `removed`, `added`, `moved`."""
    left_step: int | None
    """Null if the left run has no such step."""
    right_step: int | None
    """Null if the right run has no such step."""
    label: str
    """Step label: `chat`, `execute_tool search`, `GET /orders`."""
    path: str | None
    """Path, as `request.messages[3].content`; null if the whole step differs."""
    left: str
    """Value in the left run."""
    right: str
    follows: bool
    """Whether it repeats an earlier difference."""


class StepPair(Model):
    """A pair of matching steps; null if the run has no such step."""

    left: int | None
    right: int | None


class ToolCounts(Model):
    """Number of calls of a tool."""

    left: int
    right: int


class ToolSequences(Model):
    """Tools called, in order."""

    left: list[str]
    right: list[str]


class OutcomeDifference(Model):
    """How two outcomes differ."""

    path: str
    left: str
    right: str


class Diff(Model):
    """Two runs, step by step."""

    schema_version: int
    left: DiffSide
    right: DiffSide
    identical: bool
    """Whether all steps and the outcome are equal."""
    same_steps: list[int]
    """Steps of the left run without differences."""
    first_difference: DifferenceItem | None
    """First step that differs; null if none does."""
    differences: list[DifferenceItem]
    """By step."""
    steps: list[StepPair]
    """Steps paired by their requests."""
    tools: dict[str, ToolCounts]
    """Number of calls by tool name."""
    tool_sequence: ToolSequences
    outcome: OutcomeDifference | None
    """Null if the outcomes are equal."""
