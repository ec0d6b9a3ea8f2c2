"""Patches of what waits, ends by time, or goes by the order of a set."""
