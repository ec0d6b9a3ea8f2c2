"""Facts, tapes, settings, errors and credentials: pure conversions without I/O. Start at `facts`."""
