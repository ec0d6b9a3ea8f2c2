"""What an agent and a receiver tell each other, as JSON over HTTP.

The agent posts an `AgentReport` to ``/v1/control/report`` whenever something has changed, and at least
every `REPORT_S`. It listens at ``/v1/control/listen``, which is answered when there are orders.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from playhead_core.rerun.plans import Edit

REPORT, LISTEN = "/v1/control/report", "/v1/control/listen"
"""Paths on the port that takes OTLP."""
REPORT_S = 5.0
"""An agent that has said nothing for three times as long is not connected any more."""
LISTEN_S = 20.0
"""Longest time for which a question for orders waits."""

MOST_HALTED = 1000
"""Halted exchanges in one report at most."""
MOST_BODY_BYTES = 1 << 20
"""Of a larger body a report has the size only."""
MOST_BODIES_BYTES = 2 << 20
"""Bodies in one report together."""
MOST_REPORT_BYTES = 8 << 20
MOST_ORDER_BYTES = 4 << 20
"""One order at most, as JSON."""
MOST_ORDERS_BYTES = 8 << 20
"""Orders in one answer at most; further ones come with the next."""

What: TypeAlias = Literal[
    "pause", "continue", "step", "edit", "reject", "answer", "rules", "renew", "checkpoint"
]


class Halted(msgspec.Struct, frozen=True):
    """An exchange that waits before it goes out."""

    number: int
    """Counts up in its process, from 1."""
    trace_id: str
    """Of the run that asks, hexadecimal."""
    exchange: str
    kind: str
    """``http``, ``tool``, …"""
    key: str
    """What is asked: method and URL, or the name of the tool; empty for what arrives."""
    lane: str
    reason: str
    """``pause``, ``step``, or the condition of a rule; ``arrives``: it is an answer that arrives."""
    since_ns: int
    size_bytes: int
    body: str | None = None
    """What would go out, without credentials; None if it is no text, too large, or not recorded."""


class Hold(msgspec.Struct, frozen=True):
    """Who holds a run, as its process knows it."""

    trace_id: str
    holder: str
    lease_s: float
    """Seconds until the run goes on by itself."""
    paused: bool
    rules: list[str] = []


class OrderProblem(msgspec.Struct, frozen=True):
    """An order that could not be carried out."""

    order: int
    said: str


class CheckpointMade(msgspec.Struct, frozen=True):
    """A checkpoint that was ordered, and is on the tape now."""

    order: int
    seq: int
    """Number of its fact on the tape of the process."""


class AgentReport(msgspec.Struct, frozen=True):
    """The state of an agent's process."""

    instance: str
    trace_id: str
    """Of the run that the process belongs to."""
    pid: int = 0
    agent: str = ""
    number: int = 0
    """Counts up; a report with a smaller number than the last one is out of date."""
    halted: list[Halted] = []
    holds: list[Hold] = []
    taken: int = 0
    """The last order that was carried out, or failed."""
    problems: list[OrderProblem] = []
    made: list[CheckpointMade] = []
    """Since the last report."""
    ends: bool = False
    """Whether this is the last report of the process."""


class HandAnswer(msgspec.Struct, frozen=True):
    """An answer by hand."""

    body: str
    status: int = 200
    """HTTP status; of no meaning for a tool."""


class ControlOrder(msgspec.Struct, frozen=True):
    """Something that an agent is to do. Orders are sent again until the agent has taken them."""

    number: int
    what: What
    trace_id: str
    by: str
    lease_s: float = 0.0
    halt: int = 0
    """`Halted.number` to which it applies; 0: the run."""
    edits: list[Edit] = []
    state: str = ""
    """Name of the registered state that is edited; empty: the request that waits is."""
    answer: HandAnswer | None = None
    said: str = ""
    """Why something is rejected; the label of a checkpoint."""
    rules: list[str] = []


class OrdersWanted(msgspec.Struct, frozen=True):
    """A question for orders."""

    instance: str
    taken: int = 0
    wait_s: float = LISTEN_S


class ControlOrders(msgspec.Struct, frozen=True):
    """The answer: orders in ascending order; none if nothing came in time."""

    orders: list[ControlOrder] = []
    known: bool = True
    """Whether the receiver knows the process; if not, it is to report."""
