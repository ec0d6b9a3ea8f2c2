"""What the parts of the edge for psycopg share: its modules and generators, the links of connections."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.postgresql.psycopg.link import DatabaseLink
from playhead_instrumentation.libraries.postgresql.psycopg.waiting import Steps

ORIGINAL: Final[dict[str, Callable[..., Steps]]] = {}
"""The generators of psycopg that were replaced, by name."""

LINKS: Final[weakref.WeakKeyDictionary[Any, DatabaseLink]] = weakref.WeakKeyDictionary()
"""The links of open connections, by the connection of libpq."""

_loaded: Any = sys.modules
"""Modules of psycopg are looked up here: nothing is imported that the program has not."""


def module(name: str) -> Any:
    """A module of psycopg."""
    return _loaded[f"psycopg.{name}"]


def libpq() -> Any:
    """The module of psycopg that wraps libpq."""
    return _loaded["psycopg"].pq


def steps(function: Any) -> Callable[..., Steps]:
    """A generator function of psycopg, as such."""
    return function


def link_of(pgconn: Any) -> DatabaseLink | None:
    """The link of a connection, where what it is asked now is recorded."""
    link = LINKS.get(pgconn)
    return link if link is not None and recording_requests() is not None else None
