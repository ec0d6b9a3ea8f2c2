"""Commands that analyze many runs."""
