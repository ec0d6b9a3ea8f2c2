"""Goldens: runs that a repository keeps as regression tests."""

from playhead_replay.goldens.golden_file import Golden, read_golden, write_golden
from playhead_replay.goldens.replayed_golden import Expectation, ReplayedGolden

__all__ = ["Expectation", "Golden", "ReplayedGolden", "read_golden", "write_golden"]
