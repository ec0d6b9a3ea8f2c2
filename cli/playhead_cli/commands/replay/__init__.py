"""Commands that run a recorded program again."""
