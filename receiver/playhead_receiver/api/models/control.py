"""Objects of the query API: the control of a run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.api.models.model import Model

Halt = Annotated[
    str,
    Field(
        max_length=100,
        description="Pending request: `id` or number. Default: the only one.",
    ),
]
RuleText = Annotated[str, Field(max_length=300)]


class AnyOrder(BaseModel):
    """Common fields of all orders."""

    model_config = ConfigDict(extra="forbid")
    by: Annotated[
        str, Field(max_length=100, description="Name of the caller; the token name is added.")
    ] = ""
    wait_s: Annotated[
        float, Field(ge=0, le=60, description="Maximum wait for the agent, in seconds.")
    ] = 5.0


class LeasedOrder(AnyOrder):
    """Fields of orders that take the lease of a run."""

    lease_s: Annotated[
        float,
        Field(ge=1, le=86400, description="The run continues then, unless the lease is renewed."),
    ] = 600.0


class PauseOrder(LeasedOrder):
    """Pause the run before its next request."""


class RenewOrder(LeasedOrder):
    """Renew the lease."""


class StepOrder(LeasedOrder):
    """Release one pending request."""

    halt: Halt = ""


class ContinueOrder(AnyOrder):
    """Continue the run, or release one pending request."""

    halt: Halt = ""


class OneEdit(BaseModel):
    """One edit of a request."""

    model_config = ConfigDict(extra="forbid")
    path: Annotated[str, Field(max_length=2000, description="As in `messages[-1].content`.")]
    value: Any = None
    remove: bool = False
    add: Annotated[bool, Field(description="Add a name that is missing, or insert an item.")] = False


class EditOrder(AnyOrder):
    """Edit a pending request. It stays pending."""

    halt: Halt = ""
    edits: Annotated[list[OneEdit], Field(max_length=1000)] = []
    body: Annotated[
        str | None,
        Field(
            max_length=2 << 20,
            description="The whole edited request as JSON; differences from its `body` become edits.",
        ),
    ] = None
    state: Annotated[
        str, Field(max_length=200, description="A registered state, instead of a pending request.")
    ] = ""


class RejectOrder(AnyOrder):
    """Reject a pending request: the program gets an error."""

    halt: Halt = ""
    message: Annotated[str, Field(max_length=10_000)] = ""


class AnswerOrder(AnyOrder):
    """Answer a pending request by hand. Nothing is sent."""

    halt: Halt = ""
    body: Annotated[
        str,
        Field(max_length=2 << 20, description="The response body, or what the tool returns, as JSON."),
    ]
    status: Annotated[int, Field(ge=100, le=599)] = 200


class Breakpoints(LeasedOrder):
    """Breakpoints of the run. They replace earlier ones."""

    on: Annotated[
        list[RuleText],
        Field(max_length=100, description="`tool=NAME`, `model=NAME`, `error`, `loop`, `tokens>N`, …"),
    ]


class Limits(LeasedOrder):
    """Limits of the run. They replace earlier ones."""

    stop: Annotated[
        list[RuleText], Field(max_length=100, description="`cost>1`, `tokens>50000`, `steps>100`, …")
    ]


class CheckpointOrder(AnyOrder):
    """Take a checkpoint at the next step. The run is not paused."""

    label: Annotated[str, Field(max_length=200, description="Its label.")] = ""
    wait_s: Annotated[
        float, Field(ge=0, le=60, description="Maximum wait for the next step, in seconds.")
    ] = 30.0


class MadeCheckpoint(Model):
    """A requested checkpoint."""

    trace_id: str
    name: str | None
    """`c1`, `c2`, …; null until it is stored."""
    made: bool
    """Whether it was taken; otherwise it will be at the next step."""


class ConnectedProcess(Model):
    """A process of the run that is connected for control."""

    instance: str
    pid: int
    agent: str


class LeaseItem(Model):
    """The lease of the operator who controls the run."""

    holder: str
    left_s: float
    paused: bool
    rules: list[str]


class HaltedItem(Model):
    """A pending request."""

    id: str
    kind: str
    key: str
    trace_id: str
    exchange: str
    reason: str
    since_ns: int
    size_bytes: int
    body: str | None
    """Its body without credentials; null if not text, too large, or not recorded."""


class ControlState(Model):
    """Current control state of a run."""

    trace_id: str
    revision: int
    """Increases with each change; see `after`."""
    processes: list[ConnectedProcess]
    lease: LeaseItem | None
    halted: list[HaltedItem]
    """Oldest first."""
    taken: bool = True
    """Whether the agent has applied the order; otherwise it will when it reconnects."""


class ControlledProcess(ConnectedProcess):
    """A connected process."""

    trace_id: str
    """Trace id of its run. Pausing that run pauses the whole process."""
    halted: int
    """Number of pending requests."""
    holder: str | None


class Processes(Model):
    """Processes connected for control."""

    processes: list[ControlledProcess]
