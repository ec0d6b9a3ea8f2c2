"""The replay of what has no clock on its tape: time is virtual, and goes where the recording went."""
