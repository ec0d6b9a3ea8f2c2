"""Fills the search indexes, and turns their answers into results."""
