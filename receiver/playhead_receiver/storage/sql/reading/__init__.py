"""Reads the tables: spans, runs and their summaries, tapes and parts of tapes."""
