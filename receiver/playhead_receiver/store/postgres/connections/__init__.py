"""Connections to PostgreSQL: where it is, who reads, who writes, what is locked."""
