"""Two runs beside each other, and many: what is the same, where they part, how much they vary."""

from playhead_replay.diff.rundiff import RunDiff, StepDifference, diff
from playhead_replay.diff.variability import Variability, variability

__all__ = ["RunDiff", "StepDifference", "Variability", "diff", "variability"]
