"""JSON objects of two runs, compared step by step: the API and ``--json`` have the same."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class DiffSide(TypedDict):
    """One of two compared runs."""

    run: str
    """Its name."""
    status: Literal["running", "success", "failure", "partial", "interrupted"]
    steps: int
    errors: int
    """Steps that failed."""
    input_tokens: int
    output_tokens: int
    duration_ns: int | None
    """Null while the run is in progress."""
    cost_usd: float | None
    """Null if no price is known."""


class DifferenceItem(TypedDict):
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


class StepPair(TypedDict):
    """A pair of matching steps; null if the run has no such step."""

    left: int | None
    right: int | None


class ToolCounts(TypedDict):
    """Number of calls of a tool."""

    left: int
    right: int


class ToolSequences(TypedDict):
    """Tools called, in order."""

    left: list[str]
    right: list[str]


class OutcomeDifference(TypedDict):
    """How two outcomes differ."""

    path: str
    left: str
    right: str


class Diff(TypedDict):
    """``/v1/diff`` and ``playhead diff``: two runs, step by step."""

    schema_version: Literal[1]
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
