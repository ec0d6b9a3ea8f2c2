"""Replays and forks that this machine executes for who asks at the query port."""
