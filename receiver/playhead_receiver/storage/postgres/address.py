"""The address of a store on PostgreSQL, connections to it, and their errors as ours."""

from __future__ import annotations

import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from playhead_core.errors import ConfigurationError, StoreError, StoreUnavailable
from playhead_receiver.storage.postgres.schema import bring_up_to_date
from playhead_receiver.storage.runs.naming import (
    LONGEST_SCHEMA,
    is_readable,
    printable_url,
    split_schema,
)

_DEFAULTS: dict[str, Any] = {
    "application_name": "playhead",
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
"""Defaults that the URL may override. A server that disappears silently is noticed in 40 s."""

logging.getLogger("psycopg").setLevel(logging.ERROR)  # its warnings repeat errors that we raise

_SETTINGS = (
    "SET lock_timeout = '30s'; SET idle_in_transaction_session_timeout = '120s';"
    " SET client_min_messages = warning; SET jit = off;"
    " SET max_parallel_workers_per_gather = 0;"
    " SET default_transaction_isolation = 'read committed';"
)

_HINTS = (
    (r"password", "the password: in the URL, in PGPASSWORD, or in ~/.pgpass"),
    (r"database \S+ does not exist", "CREATE DATABASE … ENCODING UTF8, or name another in the URL"),
    (r"role \S+ does not exist", "CREATE ROLE … LOGIN, or name another user in the URL"),
    (r"pg_hba|\bSSL\b", "allow this host and user (pg_hba.conf), or set ?sslmode=require"),
    (r"too many|connection slots", "raise max_connections: a receiver takes up to 20"),
    (r"translate host|resolve|Name or service|service not known", "check the host in the URL"),
    (r"refused|No such file|timeout expired|timed out", "start the database, or check host and port"),
    (r"read-only", "name the server that accepts writes: ?target_session_attrs=read-write"),
    (r"starting up|shutting down|recovery", "wait until the database accepts connections"),
)
_HINT = "check that the database runs and lets this user connect and write"


@contextmanager
def store_errors(name: str) -> Generator[None]:
    """Convert errors of the driver to ours; ``name``: of the store.

    `StoreUnavailable` if a later try may work, perhaps after following the hint. `StoreError` for
    anything else.
    """
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as problem:
        said = " ".join(str(problem).split())
        hint = next((hint for pattern, hint in _HINTS if re.search(pattern, said)), _HINT)
        raise StoreUnavailable(f"the store {name} cannot be used", cause=said, hint=hint) from problem
    except psycopg.errors.InsufficientPrivilege as problem:
        raise StoreUnavailable(
            f"the store {name} may not be used",
            cause=" ".join(str(problem).split()),
            hint="GRANT USAGE, CREATE on the schema, and what is in it, to this user;"
            " or name another: ?schema=NAME",
        ) from problem
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as problem:
        raise StoreUnavailable(
            f"the tables of the store {name} are not there",
            cause=problem.diag.message_primary or "",
            hint="restore them from a copy; a restarted receiver creates empty ones",
        ) from problem
    except psycopg.Error as problem:
        said = " ".join(str(problem).split())
        raise StoreError(f"the store {name} refused a statement", cause=said) from problem


class SchemaAddress(msgspec.Struct, frozen=True):
    """A schema of a database."""

    url: str
    schema: str
    name: str
    """The name for messages: the URL without user, password and options."""


def parse_address(url: str) -> SchemaAddress:
    """Parse ``postgresql://USER@HOST/DATABASE?schema=playhead``; the other options are libpq's.

    `ConfigurationError` if it cannot be parsed; the error shows nothing that may be part of a password.
    """
    bare, schema = split_schema(url)
    if not is_readable(url):
        raise ConfigurationError(
            "the URL of the store cannot be read",
            hint="write signs of user and password as %40 (@) %2F (/) %3A (:) %3F (?) %23 (#)",
        )
    try:
        conninfo_to_dict(bare)
    except psycopg.ProgrammingError as problem:
        said = str(problem).strip()
        raise ConfigurationError(
            "the URL of the store cannot be read",
            cause=said if "query parameter" in said else "",
            hint="postgresql://USER@HOST:PORT/DATABASE?schema=playhead, signs in it written as %XX",
        ) from None
    if len(schema.encode()) > LONGEST_SCHEMA:
        raise ConfigurationError(f"the schema {schema} has more than {LONGEST_SCHEMA} bytes")
    return SchemaAddress(bare, schema, printable_url(url))


def connect(address: SchemaAddress) -> psycopg.Connection:
    """Open a connection in autocommit mode. Errors are psycopg's."""
    url = make_conninfo("", **(_DEFAULTS | conninfo_to_dict(address.url)))
    connection = psycopg.connect(url, autocommit=True)
    try:
        quoted = '"' + address.schema.replace('"', '""') + '"'
        connection.execute(f"{_SETTINGS} SET search_path TO {quoted}")  # type: ignore[arg-type]
        found = connection.execute("SHOW synchronous_commit").fetchone()
        if found is not None and found[0] == "off":
            connection.execute("SET synchronous_commit = on")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare_schema(address: SchemaAddress) -> None:
    """Make the tables, or migrate them. `StoreUnavailable` if the database cannot be used."""
    with store_errors(address.name), connect(address) as connection:
        bring_up_to_date(connection, address.schema, address.name)
