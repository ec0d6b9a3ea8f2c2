"""Tests whether a replay touches the world: the attempts, a world that detects them, and replays."""
