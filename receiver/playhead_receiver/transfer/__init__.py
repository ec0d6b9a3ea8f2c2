"""A run as a file: written, brought back, parted from its process, without its credentials."""
