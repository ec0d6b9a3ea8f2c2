"""Queries for runs, stored and running, in the query language."""
