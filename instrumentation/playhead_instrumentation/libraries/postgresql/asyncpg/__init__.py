"""Statements to PostgreSQL through asyncpg."""
