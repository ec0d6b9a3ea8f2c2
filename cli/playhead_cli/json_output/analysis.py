"""What many runs mean. Other objects of analyses are types of `playhead_analysis` itself."""

from __future__ import annotations

from typing import TypedDict


class PrintedWorkflow(TypedDict):
    """A discovered workflow."""

    schema_version: int
    runs: int
    """Good runs that it was discovered from."""
    workflow: str
    """The text of the TOML file."""


class PrintedExperience(TypedDict):
    """An experience."""

    schema_version: int
    runs: int
    """Good runs that it was made from."""
    files: dict[str, str]
    """Their texts by name."""
