"""Points in the time of a run, with everything said, reported, printed and written by then."""

from playhead_replay.timeline.checkpoints import (
    MarkedPlace,
    StoredState,
    checkpoint_named,
    checkpoints_of,
)
from playhead_replay.timeline.moment import (
    LastMessages,
    RunMoment,
    RunMoments,
    moment_after,
    moment_at,
    moment_of_checkpoint,
)
from playhead_replay.timeline.moment_difference import differences

__all__ = [
    "LastMessages",
    "MarkedPlace",
    "RunMoment",
    "RunMoments",
    "StoredState",
    "checkpoint_named",
    "checkpoints_of",
    "differences",
    "moment_after",
    "moment_at",
    "moment_of_checkpoint",
]
