"""Recognize requests that set up a database connection before the program uses it.

Drivers, pools and frameworks send them. They belong to the connection, not to the request that happened
to open it, and some are sent once per process. So their responses are reusable (`reusable_responses`)
for every connection to that server.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar, Token
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.database.reusable_responses import ReusableResponse, root_lane
from playhead_instrumentation.patching.lanes import Lane
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.session.session import Session

_sets_up: Final[ContextVar[bool]] = ContextVar("playhead_sets_up", default=False)


class SetUp:
    """Context manager around the set-up of a connection. Not reentrant."""

    def __enter__(self) -> None:
        self._token: Token[bool] = _sets_up.set(True)

    def __exit__(self, *_: object) -> None:
        _sets_up.reset(self._token)


def in_set_up() -> bool:
    """Return whether a request that is made now belongs to the set-up of a connection."""
    return _sets_up.get()


def setting_up(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Layer of a function that sets up a connection."""
    with SetUp():
        return original(*args, **kwargs)


async def setting_up_async(original: Any, *args: Any, **kwargs: Any) -> Any:
    """As `setting_up`, for a coroutine function."""
    with SetUp():
        return await original(*args, **kwargs)


class SetUpResponses:
    """Responses of one server in set-ups."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, bytes], ReusableResponse] = {}
        self._told: weakref.WeakKeyDictionary[Lane, int] = weakref.WeakKeyDictionary()
        """How many of them are on the tape of a request, by its lane."""

    def add(self, answer: ReusableResponse) -> None:
        """Keep the response to a set-up."""
        self._answers.setdefault((answer.request.key, answer.request.body), answer)

    def used(self) -> None:
        """Record the responses for the request that uses a connection to the server. Never raises."""
        count = len(self._answers)
        if not count or self._told.get(root := root_lane(), 0) == count:
            return
        self._told[root] = count
        for answer in list(self._answers.values()):
            answer.used()


_answers: Final[weakref.WeakKeyDictionary[Session, dict[str, SetUpResponses]]] = (
    weakref.WeakKeyDictionary()
)


def answers_of(session: Session, url: str) -> SetUpResponses:
    """Return the responses in set-ups of the server with this URL."""
    known = _answers.get(session)
    if known is None:
        known = _answers[session] = {}
    found = known.get(url)
    if found is None:
        found = known[url] = SetUpResponses()
    return found


def patch_sqlalchemy(module: ModuleType) -> None:
    """Patch `sqlalchemy.pool.base`: dialects and listeners query a new connection."""
    record: Any = required(module, "_ConnectionRecord")
    PATCHES.around(record, "_ConnectionRecord__connect", setting_up)


def patch_django(module: ModuleType) -> None:
    """Patch `django.db.backends.base.base`."""
    PATCHES.around(required(module, "BaseDatabaseWrapper"), "connect", setting_up)


def patch_asyncpg(module: ModuleType) -> None:
    """Patch `asyncpg.pool`, whose user may give a function that gets a connection ready."""
    PATCHES.around(required(module, "PoolConnectionHolder"), "connect", setting_up_async)


def patch_psycopg_pool(module: ModuleType) -> None:
    """Patch `psycopg_pool.pool`, whose user may give a function that gets a connection ready."""
    PATCHES.around(required(module, "ConnectionPool"), "_connect", setting_up)


def patch_psycopg_pool_async(module: ModuleType) -> None:
    """As `patch_psycopg_pool`, for `psycopg_pool.pool_async`."""
    PATCHES.around(required(module, "AsyncConnectionPool"), "_connect", setting_up_async)
