"""Child processes at every level: their command, exit status, and the bytes of their pipes."""
