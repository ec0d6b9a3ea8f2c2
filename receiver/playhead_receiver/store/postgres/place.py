"""Where a store on PostgreSQL is, and connections to it."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

import msgspec
import psycopg

from playhead_receiver.store.naming import LONGEST_SCHEMA, place_name, split_schema
from playhead_receiver.store.postgres.schema import bring_up_to_date
from playhead_semconv.errors import ConfigurationError, StoreUnavailable

CONNECT_S = 10

logging.getLogger("psycopg").setLevel(logging.ERROR)  # what it warns of is an error that we raise

_SETTINGS = (
    "SET lock_timeout = '30s'; SET idle_in_transaction_session_timeout = '120s';"
    " SET client_min_messages = warning;"
)


class Place(msgspec.Struct, frozen=True):
    """A schema of a database."""

    url: str
    schema: str
    name: str
    """What it is called in messages: without user, password and options."""


def place_of(url: str) -> Place:
    """The place that ``postgresql://USER@HOST/DATABASE?schema=playhead`` means; options are libpq's.

    `ConfigurationError` if it is none.
    """
    try:
        bare, schema = split_schema(url)
        name = place_name(url)
    except ValueError as problem:
        raise ConfigurationError("the URL of the store cannot be read", cause=str(problem)) from None
    if len(schema.encode()) > LONGEST_SCHEMA:
        raise ConfigurationError(f"the schema {schema} has more than {LONGEST_SCHEMA} bytes")
    return Place(bare, schema, name)


def connect(place: Place) -> psycopg.Connection:
    """A connection that commits each statement, unless it is told to begin. Errors are psycopg's."""
    connection = psycopg.connect(
        place.url, autocommit=True, connect_timeout=CONNECT_S, application_name="playhead"
    )
    try:
        quoted = '"' + place.schema.replace('"', '""') + '"'
        connection.execute(f"{_SETTINGS} SET search_path TO {quoted}")  # type: ignore[arg-type]
        found = connection.execute("SHOW synchronous_commit").fetchone()
        if found is not None and found[0] == "off":
            connection.execute("SET synchronous_commit = on")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare_place(place: Place) -> None:
    """Make the tables, or bring them up to date. `StoreUnavailable`."""
    with speaking_of(place), connect(place) as connection:
        bring_up_to_date(connection, place.schema, place.name)


@contextmanager
def speaking_of(place: Place) -> Generator[None]:
    """What PostgreSQL or the way there cannot do just now, as `StoreUnavailable`."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as problem:
        raise StoreUnavailable(
            f"the store {place.name} cannot be used",
            cause=" ".join(str(problem).split()),
            hint="look whether the database runs, lets this user in, and takes what is written",
        ) from problem
    except psycopg.errors.InsufficientPrivilege as problem:
        raise StoreUnavailable(
            f"the store {place.name} may not be used",
            cause=" ".join(str(problem).split()),
            hint="let this user use and make the schema, or name another: ?schema=NAME",
        ) from problem
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as problem:
        raise StoreUnavailable(
            f"the tables of the store {place.name} are not there",
            cause=problem.diag.message_primary or "",
            hint="put them back from a copy; a receiver that is started anew makes them empty",
        ) from problem
