"""Statements to PostgreSQL through any driver: the protocol of its server, and SQL as a request."""
