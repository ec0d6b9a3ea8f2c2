"""Child processes in full: what they are told and say, signals, waits, and their part in a replay."""
