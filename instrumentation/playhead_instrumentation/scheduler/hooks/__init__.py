"""Patches of functions that wait, that time out, or that depend on the order of a set."""
