"""Goldens: runs that a repository keeps as regression tests."""

from playhead_replay.goldens.golden_file import Golden, Purpose, read_golden, read_stored, write_golden
from playhead_replay.goldens.replayed_golden import Expectation, ReplayedGolden

__all__ = [
    "Expectation",
    "Golden",
    "Purpose",
    "ReplayedGolden",
    "read_golden",
    "read_stored",
    "write_golden",
]
