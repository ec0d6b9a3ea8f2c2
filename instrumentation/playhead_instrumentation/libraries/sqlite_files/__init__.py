"""SQLite databases in files."""
