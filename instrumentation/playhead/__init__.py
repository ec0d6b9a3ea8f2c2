"""playhead, a flight recorder for LLM agents: what a program may ask of the recording it runs under.

Without a recording everything here does nothing.
"""

from __future__ import annotations

from importlib.metadata import version

from playhead_core.errors import OutcomeUnknown, StoreError
from playhead_instrumentation.bootstrap.start import flush
from playhead_instrumentation.libraries.inbound.marked_run import run
from playhead_instrumentation.manual.artifact import artifact, workspace
from playhead_instrumentation.manual.checkpoint import checkpoint, register_state
from playhead_instrumentation.manual.reports import (
    agent,
    decision,
    failure,
    goal,
    message,
    phase,
    result,
    signal,
    task,
    triggered_by,
)
from playhead_instrumentation.manual.state import state
from playhead_instrumentation.manual.step import step
from playhead_instrumentation.manual.tool.idempotent import idempotent
from playhead_instrumentation.manual.tool.tool import tool
from playhead_instrumentation.session.checks import check

__version__ = version("playhead-instrumentation")

__all__ = [
    "OutcomeUnknown",
    "StoreError",
    "__version__",
    "agent",
    "artifact",
    "check",
    "checkpoint",
    "decision",
    "failure",
    "flush",
    "goal",
    "idempotent",
    "message",
    "phase",
    "register_state",
    "result",
    "run",
    "signal",
    "state",
    "step",
    "task",
    "tool",
    "triggered_by",
    "workspace",
]
