"""Objects of the query API: the control of a run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.query.models.model import Model

Halt = Annotated[
    str,
    Field(
        max_length=100,
        description="Which of those that wait: its `id`, or its number. Default: the only one.",
    ),
]
RuleText = Annotated[str, Field(max_length=300)]


class AnyOrder(BaseModel):
    """What every order may say."""

    model_config = ConfigDict(extra="forbid")
    by: Annotated[
        str, Field(max_length=100, description="Who asks; the name of the token is added.")
    ] = ""
    wait_s: Annotated[
        float, Field(ge=0, le=60, description="How long the answer may wait for the agent.")
    ] = 5.0


class LeasedOrder(AnyOrder):
    """What an order says that holds the run."""

    lease_s: Annotated[
        float,
        Field(ge=1, le=86400, description="The run goes on by itself after that, unless it is renewed."),
    ] = 600.0


class PauseOrder(LeasedOrder):
    """Halt the run at its next step."""


class RenewOrder(LeasedOrder):
    """Hold the run for longer."""


class StepOrder(LeasedOrder):
    """Let one go out."""

    halt: Halt = ""


class ContinueOrder(AnyOrder):
    """Let the run go on, or one of those that wait."""

    halt: Halt = ""


class OneEdit(BaseModel):
    """An edit of a request that waits."""

    model_config = ConfigDict(extra="forbid")
    path: Annotated[str, Field(max_length=2000, description="As in `messages[-1].content`.")]
    value: Any = None
    remove: bool = False
    add: Annotated[bool, Field(description="Add a name that is missing, or insert an item.")] = False


class EditOrder(AnyOrder):
    """Edit a request that waits. It goes on waiting."""

    halt: Halt = ""
    edits: Annotated[list[OneEdit], Field(max_length=1000)] = []
    body: Annotated[
        str | None,
        Field(
            max_length=2 << 20,
            description="What waits, as JSON, as it is to be; what differs from `body` of what waits is "
            "edited.",
        ),
    ] = None
    state: Annotated[
        str, Field(max_length=200, description="A registered state, instead of what waits.")
    ] = ""


class RejectOrder(AnyOrder):
    """Reject what waits: the program gets an error."""

    halt: Halt = ""
    message: Annotated[str, Field(max_length=10_000)] = ""


class AnswerOrder(AnyOrder):
    """Answer what waits by hand: nothing goes out."""

    halt: Halt = ""
    body: Annotated[
        str,
        Field(
            max_length=2 << 20, description="The body of the response, or what a tool returns, as JSON."
        ),
    ]
    status: Annotated[int, Field(ge=100, le=599)] = 200


class Breakpoints(LeasedOrder):
    """Where the run is to halt by itself. They replace those that were set before."""

    on: Annotated[
        list[RuleText],
        Field(max_length=100, description="`tool=NAME`, `model=NAME`, `error`, `loop`, `tokens>N`, …"),
    ]


class Limits(LeasedOrder):
    """Where what the run asks is to be rejected. They replace those that were set before."""

    stop: Annotated[
        list[RuleText], Field(max_length=100, description="`cost>1`, `tokens>50000`, `steps>100`, …")
    ]


class CheckpointOrder(AnyOrder):
    """Make a checkpoint at the next step; the run is not halted."""

    label: Annotated[str, Field(max_length=200, description="What it is called.")] = ""
    wait_s: Annotated[
        float, Field(ge=0, le=60, description="How long the answer may wait for the next step.")
    ] = 30.0


class MadeCheckpoint(Model):
    """A checkpoint that was ordered."""

    trace_id: str
    name: str | None
    """`c1`, `c2`, …; null where it is not made yet, or not stored yet."""
    made: bool
    """Whether it is made; if not, it is made at the next step all the same."""


class ConnectedProcess(Model):
    """A process of the run that takes orders."""

    instance: str
    pid: int
    agent: str


class LeaseItem(Model):
    """Who holds the run."""

    holder: str
    left_s: float
    paused: bool
    rules: list[str]


class HaltedItem(Model):
    """Something that waits before it goes out."""

    id: str
    kind: str
    key: str
    trace_id: str
    exchange: str
    reason: str
    since_ns: int
    size_bytes: int
    body: str | None
    """What would go out, without credentials; null where it is no text, too large, or not recorded."""


class ControlState(Model):
    """The control of a run, as of now."""

    trace_id: str
    revision: int
    """Counts changes; for `after`."""
    processes: list[ConnectedProcess]
    lease: LeaseItem | None
    halted: list[HaltedItem]
    """Oldest first."""
    taken: bool = True
    """Whether the agent has taken the order; if not, it takes it when it is heard of again."""


class ControlledProcess(ConnectedProcess):
    """A connected process."""

    trace_id: str
    """Of its own run: whoever pauses that pauses all that the process does."""
    halted: int
    """How much of it waits."""
    holder: str | None


class Processes(Model):
    """The processes that take orders."""

    processes: list[ControlledProcess]
