"""Starts the recorded command again: isolated, answered from its tape, warm or cold."""
