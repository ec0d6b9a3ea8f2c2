"""Compares two or more runs: what is the same, where they first differ, and how much they vary."""

from playhead_replay.diff.rundiff import RunDiff, StepDifference, diff
from playhead_replay.diff.variability import Variability, variability

__all__ = ["RunDiff", "StepDifference", "Variability", "diff", "variability"]
