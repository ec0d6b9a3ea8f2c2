"""Converts errors of PostgreSQL and of its connection to ours, with a hint what to do."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from playhead_core.errors import StoreError, StoreUnavailable

_HINTS = (
    (r"password", "the password: in the URL, in PGPASSWORD, or in ~/.pgpass"),
    (r"database \S+ does not exist", "CREATE DATABASE … ENCODING UTF8, or name another in the URL"),
    (r"role \S+ does not exist", "CREATE ROLE … LOGIN, or name another user in the URL"),
    (r"pg_hba|\bSSL\b", "let this host and user in (pg_hba.conf), or say how: ?sslmode=require"),
    (r"too many|connection slots", "raise max_connections: a receiver takes up to 20"),
    (r"translate host|resolve|Name or service|service not known", "look at the host in the URL"),
    (r"refused|No such file|timeout expired|timed out", "start the database, or look at host and port"),
    (r"read-only", "name the server that takes writes: ?target_session_attrs=read-write"),
    (r"starting up|shutting down|recovery", "wait until the database takes connections"),
)
_HINT = "look whether the database runs, lets this user in, and takes what is written"


@contextmanager
def speaking_of(name: str) -> Generator[None]:
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
            hint="put them back from a copy; a receiver that is started anew makes them empty",
        ) from problem
    except psycopg.Error as problem:
        said = " ".join(str(problem).split())
        raise StoreError(f"the store {name} did not do what was asked", cause=said) from problem
