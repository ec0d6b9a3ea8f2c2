"""The recorded command, started again: isolated, answered from its tape, warm or cold."""
