"""A run, put together again: its spans, steps, exchanges, command, outputs and costs."""
