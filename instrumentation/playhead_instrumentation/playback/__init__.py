"""What answers in the place of the world at a replay, a fork or a resume. No recording loads it."""
