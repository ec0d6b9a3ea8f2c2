"""Whose code it is that runs: the program's, a library's, or the machinery's below them."""
