"""Child processes above level ``exchanges``: streams, signals, waits, and how a replay answers them."""
