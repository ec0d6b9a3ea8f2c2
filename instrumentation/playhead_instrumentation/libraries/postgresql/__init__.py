"""Statements to PostgreSQL, whichever driver sends them: the wire of its server, and SQL as an ask."""
