"""Tape files: reading, writing, and checking their integrity."""
