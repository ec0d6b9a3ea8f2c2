"""Words for an interpreter whose program forks."""

UNWARNED = ("-W", "ignore::DeprecationWarning")
"""Since Python 3.12 a process with threads is warned as it forks; playhead has threads of its own."""
