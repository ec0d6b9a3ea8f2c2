"""Copies of what is put into stores, for the tape of a recording."""
