"""Writes the tables and views of ``playhead sql`` to a schema of their own in PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from playhead_analysis.sql.tables import TABLES, VIEWS
from playhead_core.errors import UsageError
from playhead_receiver.storage.postgres.address import connect, parse_address, store_errors
from playhead_receiver.storage.runs.naming import sibling_url

MARK: Final = "Made by playhead sql: it is deleted and made again."
"""Comment of a schema that may be replaced."""
_TYPES: Final[dict[str, LiteralString]] = {
    "text": "text",
    "real": "double precision",
    "integer": "bigint",
}


def write_run_tables(url: str, database: sqlite3.Connection) -> str:
    """Replace the tables in the schema ``SCHEMA_tables`` of a database; return the schema's name.

    The new ones are there at once. `UsageError` if the schema is not one of `write_run_tables`.
    """
    address = parse_address(sibling_url(url, "tables"))
    name = sql.Identifier(address.schema)
    with store_errors(address.name), connect(address) as connection, connection.transaction():
        found = connection.execute(
            "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s",
            (address.schema,),
        ).fetchone()
        if found is not None and found[0] != MARK:
            raise UsageError(
                f"the schema {address.schema} is not of playhead sql", hint="name another: ?schema=NAME"
            )
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(name))
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        connection.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(name, sql.Literal(MARK)))
        for table, columns in TABLES.items():
            _write(connection, database, table, columns)
        for view, query in VIEWS.items():
            connection.execute(
                sql.SQL("CREATE VIEW {} AS {}").format(sql.Identifier(view), sql.SQL(query))
            )
    return address.schema


def _write(
    connection: psycopg.Connection,
    database: sqlite3.Connection,
    table: str,
    columns: Sequence[tuple[str, str]],
) -> None:
    declared = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(_TYPES[kind]))
        for column, kind in columns
    )
    name = sql.Identifier(table)
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(name, declared))
    with (
        connection.cursor() as cursor,
        cursor.copy(sql.SQL("COPY {} FROM STDIN").format(name)) as copy,
    ):
        for row in database.execute(f"SELECT * FROM {table}"):
            copy.write_row(row)
