"""Points in the time of a run: what had been said, reported, printed and written by then."""

from playhead_replay.moments.moment import LastMessages, RunMoment, moment_after, moment_at
from playhead_replay.moments.moment_difference import differences

__all__ = ["LastMessages", "RunMoment", "differences", "moment_after", "moment_at"]
