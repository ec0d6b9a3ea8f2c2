"""Workflows: what runs of a kind must do, in a file; and how far a run did it."""

from playhead_analysis.workflows.conformance import assert_workflow

__all__ = ["assert_workflow"]
