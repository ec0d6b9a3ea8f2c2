"""Statements to PostgreSQL through psycopg 3, blocking and with asyncio."""
