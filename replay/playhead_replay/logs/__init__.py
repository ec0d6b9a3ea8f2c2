"""The log records of a run."""
