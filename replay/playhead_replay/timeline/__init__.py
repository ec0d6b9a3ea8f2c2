"""The state of a run at any step: conversations, program states, output, files and databases."""

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
