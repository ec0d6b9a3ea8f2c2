"""Failures of a run by type and code. They are derived when a run is read; stored facts never change."""
