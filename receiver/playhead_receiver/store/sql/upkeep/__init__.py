"""What keeps the tables in order: deletion, compaction, verification."""
