"""Whether a replay touches the world: ways to do that, a world that notices, and who replays."""
