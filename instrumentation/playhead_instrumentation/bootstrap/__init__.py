"""How a recording or a replay starts in a process, and how it ends."""
