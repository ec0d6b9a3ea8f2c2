"""Tape files: written, read, and what they show of custody."""
