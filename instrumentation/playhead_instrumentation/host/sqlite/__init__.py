"""Databases of SQLite that lie in files."""
