"""Output of commands that control running agents."""

from __future__ import annotations

from typing import Literal, TypedDict


class PrintedProcess(TypedDict):
    """A process of the run that accepts orders."""

    instance: str
    pid: int
    agent: str


class PrintedLease(TypedDict):
    """The lease of the operator who holds the run."""

    holder: str
    left_s: float
    paused: bool
    rules: list[str]


class PrintedHalt(TypedDict):
    """A pending request or response."""

    id: str
    kind: str
    key: str
    trace_id: str
    exchange: str
    reason: str
    since_ns: int
    size_bytes: int
    body: str | None


class PrintedControl(TypedDict):
    """``playhead pause``, ``step``, ``continue``, ``edit``, ``reject``, ``answer``: the run now."""

    schema_version: Literal[1]
    run: str
    trace_id: str
    revision: int
    processes: list[PrintedProcess]
    lease: PrintedLease | None
    halted: list[PrintedHalt]
    taken: bool
    """Whether the agent has taken the order."""


class PrintedMadeCheckpoint(TypedDict):
    """``playhead checkpoint``: the checkpoint that was ordered."""

    schema_version: Literal[1]
    run: str
    trace_id: str
    name: str | None
    """``c1``, ``c2``, …; null if it is not created or not stored yet."""
    made: bool
