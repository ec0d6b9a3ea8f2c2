"""Continues recording in the child processes of a recorded process, and after an ``exec``."""
