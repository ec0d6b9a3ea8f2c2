"""Custody on the command line: of a stored run, and of a tape file."""
