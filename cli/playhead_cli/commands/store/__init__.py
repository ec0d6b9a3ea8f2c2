"""Commands that manage what is stored."""
