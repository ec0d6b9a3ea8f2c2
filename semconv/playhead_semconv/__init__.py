"""Names, shapes and pure conversions, no I/O. Start at `facts`."""
