"""Summaries: a run of any length in few lines, each of which can be opened."""
