"""Maintenance of the tables: deletion, compaction, verification."""
