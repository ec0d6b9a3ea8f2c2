"""Requests that the program receives, and functions that it marks as runs of their own."""
