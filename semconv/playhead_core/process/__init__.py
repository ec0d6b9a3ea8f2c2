"""The surroundings of a process: its environment, folders and modules; and genuine threads."""
