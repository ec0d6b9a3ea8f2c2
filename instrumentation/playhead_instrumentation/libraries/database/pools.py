"""Where pools and frameworks get a new connection ready: what is asked meanwhile is its set-up."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from playhead_instrumentation.libraries.database.set_up import setting_up, setting_up_async
from playhead_instrumentation.patching.patches import PATCHES, required


def patch_sqlalchemy(module: ModuleType) -> None:
    """Patch `sqlalchemy.pool.base`: dialects and listeners ask when a connection is new."""
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
    """The same for `psycopg_pool.pool_async`."""
    PATCHES.around(required(module, "AsyncConnectionPool"), "_connect", setting_up_async)
