"""A run in the terminal: stepping backwards and forwards. Needs the extra ``tui`` (textual)."""
