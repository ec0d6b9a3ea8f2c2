"""Files that the program reads, lists and changes."""
