"""Records an unmodified Python agent, and answers its replay.

The program's own side of it is the package `playhead`.
"""
