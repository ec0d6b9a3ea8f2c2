"""Objects of the query API: two runs, compared step by step."""

from __future__ import annotations

from playhead_receiver.query.models.model import Model, Status


class DiffSide(Model):
    """One of two runs that are compared."""

    run: str
    status: Status
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    duration_ns: int | None
    cost_usd: float


class DifferenceItem(Model):
    """A difference between two runs."""

    kind: str
    left_step: int | None
    right_step: int | None
    label: str
    path: str | None
    left: str
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
    same_steps: list[int]
    first_difference: DifferenceItem | None
    differences: list[DifferenceItem]
    steps: list[StepPair]
    tools: dict[str, ToolCounts]
    tool_sequence: ToolSequences
    outcome: OutcomeDifference | None
