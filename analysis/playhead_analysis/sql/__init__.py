"""Runs as tables, for people who know SQL: in SQLite, PostgreSQL and Parquet files."""
