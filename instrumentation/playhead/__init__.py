"""playhead, a flight recorder for LLM agents: what a program may ask of the recording it runs under.

Without a recording everything here does nothing.
"""

from __future__ import annotations

from importlib.metadata import version

from playhead_instrumentation.bootstrap.start import flush
from playhead_instrumentation.boundaries.artifact import artifact
from playhead_instrumentation.boundaries.checkpoint import checkpoint, register_state
from playhead_instrumentation.boundaries.inbound.marked_run import run
from playhead_instrumentation.boundaries.marked_step import step
from playhead_instrumentation.boundaries.state import state
from playhead_instrumentation.boundaries.tool.idempotent import idempotent
from playhead_instrumentation.boundaries.tool.tool import tool
from playhead_instrumentation.boundaries.workspace import workspace
from playhead_instrumentation.session.checks import check
from playhead_semconv.errors import OutcomeUnknown, StoreError

__version__ = version("playhead-instrumentation")

__all__ = [
    "OutcomeUnknown",
    "StoreError",
    "__version__",
    "artifact",
    "check",
    "checkpoint",
    "flush",
    "idempotent",
    "register_state",
    "run",
    "state",
    "step",
    "tool",
    "workspace",
]
