"""Statements to PostgreSQL. The tape has what the server said, as its wire carries it."""
