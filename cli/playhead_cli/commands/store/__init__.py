"""Commands that manage the store."""
