"""Functions that the program marks as tools."""
