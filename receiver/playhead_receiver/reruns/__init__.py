"""Replays and forks that this machine executes for callers of the query API."""
