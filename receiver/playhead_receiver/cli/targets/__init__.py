"""What a verb is about: which run, which step, and whether its program is trusted."""
