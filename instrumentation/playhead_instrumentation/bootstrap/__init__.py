"""How recording starts in a process: entry points, providers, run root, children, exit."""
