"""Child processes as every recording sees them: command, exit status, what their pipes said."""
