"""Checkpoint stores: the protocol, what engines share, SQLite, and the suite that proves an engine."""
