"""What a process stands in: its environment, folders, modules, and threads of the interpreter's own."""
