"""Interpreter options for a program that forks."""

UNWARNED = ("-W", "ignore::DeprecationWarning")
"""Suppresses the warning that Python 3.12 and later give when a process with threads forks.

playhead has threads of its own.
"""
