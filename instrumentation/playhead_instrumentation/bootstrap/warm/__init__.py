"""A process that waits with its libraries imported, and is forked for each replay."""
