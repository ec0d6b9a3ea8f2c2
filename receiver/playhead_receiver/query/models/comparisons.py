"""Objects of the query API: two runs, compared step by step."""

from __future__ import annotations

from playhead_receiver.query.models.model import Model, Status


class DiffSide(Model):
    """One of two runs that are compared."""

    run: str
    """Its name."""
    status: Status
    steps: int
    errors: int
    """Steps that failed."""
    input_tokens: int
    output_tokens: int
    duration_ns: int | None
    """Null while it runs."""
    cost_usd: float | None
    """Null where nothing of it has a known price."""


class DifferenceItem(Model):
    """A difference between two runs."""

    kind: str
    """`request`, `response`, `error`, `state`; `removed`, `added` or `moved` for a whole step."""
    left_step: int | None
    """Null: the left run has no such step."""
    right_step: int | None
    """Null: the right run has no such step."""
    label: str
    """What the step is: `chat`, `execute_tool search`, `GET /orders`."""
    path: str | None
    """Where it is: `request.messages[3].content`; null where the whole step differs."""
    left: str
    """What stands there in the left run."""
    right: str
    follows: bool
    """It repeats an earlier one."""


class StepPair(Model):
    """Steps of two runs that do the same; null: the run has no such step."""

    left: int | None
    right: int | None


class ToolCounts(Model):
    """How often a tool was called."""

    left: int
    right: int


class ToolSequences(Model):
    """The tools that were called, in order."""

    left: list[str]
    right: list[str]


class OutcomeDifference(Model):
    """How the ends of two runs differ."""

    path: str
    left: str
    right: str


class Diff(Model):
    """Two runs, step by step."""

    schema_version: int
    left: DiffSide
    right: DiffSide
    identical: bool
    """Neither a step nor the end differs."""
    same_steps: list[int]
    """Numbers of steps of the left run without a difference."""
    first_difference: DifferenceItem | None
    """Where the runs part; null: at no step."""
    differences: list[DifferenceItem]
    """In order of the steps."""
    steps: list[StepPair]
    """Steps paired by what they ask."""
    tools: dict[str, ToolCounts]
    """How often each was called, by name."""
    tool_sequence: ToolSequences
    outcome: OutcomeDifference | None
    """Null: they end alike."""
