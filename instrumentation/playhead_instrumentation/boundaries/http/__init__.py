"""Requests over HTTP: one exchange, and an edge per library that moves the bytes."""
