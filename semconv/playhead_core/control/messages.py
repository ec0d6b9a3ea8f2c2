"""Messages between an agent and a receiver, as JSON over HTTP.

The agent posts an `AgentReport` to ``/v1/control/report`` after every change, and at least every
`REPORT_S`. It polls ``/v1/control/listen``, which responds when there are orders.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from playhead_core.rerun.plans import Edit

REPORT, LISTEN = "/v1/control/report", "/v1/control/listen"
"""Paths on the port that takes OTLP."""
REPORT_S = 5.0
"""Interval of reports. An agent without a report for three intervals counts as disconnected."""
LISTEN_S = 20.0
"""Longest time for which a poll for orders waits."""

MOST_HALTED = 1000
"""Limit of pending requests in one report."""
MOST_BODY_BYTES = 1 << 20
"""Limit of a body in a report; of a larger one the report has the size only."""
MOST_BODIES_BYTES = 2 << 20
"""Limit of all bodies in one report together."""
MOST_REPORT_BYTES = 8 << 20
MOST_ORDER_BYTES = 4 << 20
"""Limit of one order, as JSON."""
MOST_ORDERS_BYTES = 8 << 20
"""Limit of the orders in one response; the rest comes with the next."""

What: TypeAlias = Literal[
    "pause", "continue", "step", "edit", "reject", "answer", "rules", "renew", "checkpoint"
]


class Halted(msgspec.Struct, frozen=True):
    """A pending request: it waits before it is sent."""

    number: int
    """Counts up in its process, from 1."""
    trace_id: str
    """Trace id of the run, hexadecimal."""
    exchange: str
    kind: str
    """``http``, ``tool``, …"""
    key: str
    """Method and URL, or the name of the tool; empty for an arriving response."""
    lane: str
    reason: str
    """``pause``, ``step``, or the condition of a rule; ``arrives``: it is an arriving response."""
    since_ns: int
    size_bytes: int
    body: str | None = None
    """The body without credentials; None if it is no text, too large, or not recorded."""


class Hold(msgspec.Struct, frozen=True):
    """The controller that holds a run, as its process knows it."""

    trace_id: str
    holder: str
    lease_s: float
    """Seconds until the run continues by itself."""
    paused: bool
    rules: list[str] = []


class OrderProblem(msgspec.Struct, frozen=True):
    """An order that could not be carried out."""

    order: int
    said: str


class CheckpointMade(msgspec.Struct, frozen=True):
    """A checkpoint that was ordered and is now on the tape."""

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
    """Number of the last order that was carried out or failed."""
    problems: list[OrderProblem] = []
    made: list[CheckpointMade] = []
    """Since the last report."""
    ends: bool = False
    """Whether this is the last report of the process."""


class HandAnswer(msgspec.Struct, frozen=True):
    """A response written by an operator."""

    body: str
    status: int = 200
    """HTTP status; of no meaning for a tool."""


class ControlOrder(msgspec.Struct, frozen=True):
    """An order to an agent. Orders are sent again until the agent has taken them."""

    number: int
    what: What
    trace_id: str
    by: str
    lease_s: float = 0.0
    halt: int = 0
    """`Halted.number` that it applies to; 0: the run."""
    edits: list[Edit] = []
    state: str = ""
    """Name of the registered state to edit; empty: edit the pending request."""
    answer: HandAnswer | None = None
    said: str = ""
    """Reason of a rejection, or label of a checkpoint."""
    rules: list[str] = []


class OrdersWanted(msgspec.Struct, frozen=True):
    """A poll for orders."""

    instance: str
    taken: int = 0
    wait_s: float = LISTEN_S


class ControlOrders(msgspec.Struct, frozen=True):
    """The response to a poll: orders in ascending order; none if there were none in time."""

    orders: list[ControlOrder] = []
    known: bool = True
    """Whether the receiver knows the process; if not, the process must report."""
