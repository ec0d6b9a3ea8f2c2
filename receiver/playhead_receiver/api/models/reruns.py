"""Objects of the query API: replays and forks that the receiver executes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.api.models.control import OneEdit
from playhead_receiver.api.models.model import Model, TraceId


class ReplayOrder(BaseModel):
    """Replay a run, answered entirely from the recording."""

    model_config = ConfigDict(extra="forbid")


class ForkOrder(BaseModel):
    """Replay up to a step, apply edits, and continue live."""

    model_config = ConfigDict(extra="forbid")
    step: Annotated[
        int | None,
        Field(ge=1, le=100_000_000, description="Null: as far as the program matches the recording."),
    ] = None
    request: Annotated[
        str | None,
        Field(
            max_length=4 << 20,
            description="The whole edited request of the step as JSON; differences become edits.",
        ),
    ] = None
    edits: Annotated[
        list[OneEdit],
        Field(max_length=1000, description="Paths begin with `request`, `response`, `tool_result`, …"),
    ] = []
    offline: Annotated[bool, Field(description="Refuse live requests.")] = False
    unanswered: Annotated[
        Literal["ask", "resend", "skip"],
        Field(
            description="What to do with a write without a recorded response; `ask`: refuse the fork."
        ),
    ] = "ask"


class EditableRequest(Model):
    """The request of a step, in the form that a fork edits."""

    run: str
    trace_id: TraceId
    step: int
    text: str
    """JSON, indented."""


class RerunItem(Model):
    """A replay or fork."""

    id: str
    kind: Literal["replay", "fork"]
    run: str
    trace_id: TraceId
    step: int | None
    state: Literal["running", "ended", "cancelled"]
    started_ns: int
    ended_ns: int | None
    exit_code: int | None
    by: str
    """Name of the token that started it."""
    revision: int
    """Increases with each change; see `after`."""


class RerunProblem(Model):
    """Why it failed."""

    code: str
    what: str
    cause: str
    hint: str


class RerunState(RerunItem):
    """A replay or fork with its output."""

    made: str | None
    """Name of the run that a fork records, once stored."""
    said: str
    """The end of what it wrote to stderr."""
    printed: str
    """The end of what a forked program wrote to stdout."""
    report: dict[str, Any] | None
    """The report of a finished replay, as `playhead replay --json` prints it."""
    problem: RerunProblem | None


class RerunList(Model):
    """Replays and forks of the receiver, newest first."""

    allowed: bool
    """Whether the caller may start one."""
    why_not: str | None
    reruns: list[RerunItem]
