"""SQLite: which database a connection gets, and what its functions answer."""
