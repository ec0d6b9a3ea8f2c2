"""Objects of the query API: replays and forks that the receiver executes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.query.models.control import OneEdit
from playhead_receiver.query.models.model import Model, TraceId


class ReplayOrder(BaseModel):
    """Execute a run again, all of it answered from its tape."""

    model_config = ConfigDict(extra="forbid")


class ForkOrder(BaseModel):
    """Go back to a step, change something there, and go on for real."""

    model_config = ConfigDict(extra="forbid")
    step: Annotated[
        int | None,
        Field(ge=1, le=100_000_000, description="Null: as far as the program agrees with its tape."),
    ] = None
    request: Annotated[
        str | None,
        Field(
            max_length=4 << 20,
            description="The whole request of the step as JSON, as it is to be; what differs is edited.",
        ),
    ] = None
    edits: Annotated[
        list[OneEdit],
        Field(max_length=1000, description="Paths begin with `request`, `response`, `tool_result`, …"),
    ] = []
    offline: Annotated[bool, Field(description="What would go to the world is refused.")] = False
    unanswered: Annotated[
        Literal["ask", "resend", "skip"],
        Field(
            description="What becomes of a write that was not answered; `ask`: such a fork is refused."
        ),
    ] = "ask"


class EditableRequest(Model):
    """The request of a step, as a fork can edit it."""

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
    """Name of the token of who ordered it."""
    revision: int
    """Counts what came; for `after`."""


class RerunProblem(Model):
    """Why nothing became of it."""

    code: str
    what: str
    cause: str
    hint: str


class RerunState(RerunItem):
    """A replay or fork, with what it says."""

    made: str | None
    """Name of the run that a fork records, from when it is stored."""
    said: str
    """The end of what it wrote to stderr."""
    printed: str
    """The end of what a forked program wrote to stdout."""
    report: dict[str, Any] | None
    """The fidelity report of a replay, from its end on; as `playhead replay --json` prints it."""
    problem: RerunProblem | None


class RerunList(Model):
    """The replays and forks of a receiver, the newest first."""

    allowed: bool
    """Whether who asks may order one here."""
    why_not: str | None
    reruns: list[RerunItem]
