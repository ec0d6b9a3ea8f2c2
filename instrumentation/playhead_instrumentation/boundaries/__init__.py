"""Boundaries of every level: where the outside world enters or leaves the process. One folder each."""
