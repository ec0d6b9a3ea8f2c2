"""Connections to PostgreSQL: addresses, reading, writing, locks, errors."""
