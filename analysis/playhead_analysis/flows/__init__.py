"""Flows: which ways many runs take, how often, how long, and where they part."""
