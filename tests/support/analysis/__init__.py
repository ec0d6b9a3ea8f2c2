"""Paths of runs, made for analyses."""
