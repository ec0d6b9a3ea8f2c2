"""Requests that come to the program, and what it marks as a run of its own."""
