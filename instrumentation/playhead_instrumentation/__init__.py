"""Records an unmodified Python agent: bootstrap, boundaries, clients, drivers.

The program's own side of it is the package `playhead`.
"""
