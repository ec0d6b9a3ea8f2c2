"""The machine below the program: files, databases, processes. Level ``exchanges`` does not load it."""
