"""Writes prepared batches into the tables: one writer of rows for all SQL engines."""
