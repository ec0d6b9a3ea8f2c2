"""Goldens: runs that a repository keeps as regression tests."""

from playhead_replay.goldens.golden_file import Golden, read_golden, write_golden
from playhead_replay.goldens.replayed import Expectation, Replayed

__all__ = ["Expectation", "Golden", "Replayed", "read_golden", "write_golden"]
