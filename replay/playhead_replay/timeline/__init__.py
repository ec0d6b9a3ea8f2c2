"""The state of a run at any step: conversations, program states, output, files and databases."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead_replay.timeline.checkpoints import (
        MarkedCheckpoint,
        StoredState,
        checkpoint_named,
        checkpoints_of,
    )
    from playhead_replay.timeline.run_state import (
        LastMessages,
        RunState,
        RunStates,
        state_after_step,
        state_at_checkpoint,
        state_at_time,
    )
    from playhead_replay.timeline.run_state_difference import differences

__all__ = [
    "LastMessages",
    "MarkedCheckpoint",
    "RunState",
    "RunStates",
    "StoredState",
    "checkpoint_named",
    "checkpoints_of",
    "differences",
    "state_after_step",
    "state_at_checkpoint",
    "state_at_time",
]

_PLACES = {
    "checkpoints": ("MarkedCheckpoint", "StoredState", "checkpoint_named", "checkpoints_of"),
    "run_state": (
        "LastMessages",
        "RunState",
        "RunStates",
        "state_after_step",
        "state_at_checkpoint",
        "state_at_time",
    ),
    "run_state_difference": ("differences",),
}


def __getattr__(name: str) -> Any:
    """Import the name that is asked for. Tool calls are found without files, databases and states."""
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
