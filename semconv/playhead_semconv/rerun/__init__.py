"""What a replay, a fork or a resume is told by who starts it."""
