"""The edge for psycopg 3, blocking and with asyncio.

Statements are met where a cursor or a connection hands them to libpq (`psycopg_statements`), results
where the generators of psycopg take them from libpq (`psycopg_answers`). A replay connects libpq to a
server that stands in for the recorded one (`psycopg_opening`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.boundaries.postgresql import (
    psycopg_answers,
    psycopg_links,
    psycopg_opening,
    psycopg_statements,
)
from playhead_instrumentation.boundaries.postgresql.waiting import wait, wait_async
from playhead_instrumentation.runtime.patching import PATCHES, required


def patch(module: ModuleType) -> None:
    """Patch psycopg, which is loaded."""
    required(module, "pq")
    waiting, generators = psycopg_links.module("waiting"), psycopg_links.module("generators")
    base, cursor = (
        psycopg_links.module("_connection_base").BaseConnection,
        psycopg_links.module("_cursor_base").BaseCursor,
    )
    client, pipeline = (
        psycopg_links.module("client_cursor").ClientCursorMixin,
        psycopg_links.module("_pipeline_base").BasePipeline,
    )
    server_cursor = psycopg_links.module("_server_cursor_base").ServerCursorMixin
    layers: tuple[tuple[Any, dict[str, Any]], ...] = (
        (waiting, {"wait": wait, "wait_conn": wait, "wait_async": wait_async}),
        (waiting, {"wait_conn_async": wait_async}),
        (
            base,
            {
                "_exec_command": psycopg_statements.commanding,
                "_deallocate": psycopg_statements.deallocating,
            },
        ),
        (
            base,
            {
                "_cancel_gen": psycopg_statements.cancelling,
                "_notice_handler": psycopg_statements.noticed,
                "_notify_handler": psycopg_statements.notified,
            },
        ),
        (
            cursor,
            {
                "_execute_send": psycopg_statements.sending,
                "_send_query_prepared": psycopg_statements.sending_prepared,
            },
        ),
        (cursor, {"_send_prepare": psycopg_statements.preparing}),
        (client, {"_execute_send": psycopg_statements.sending}),
        (server_cursor, {"_describe_gen": psycopg_statements.describing}),
        (pipeline, {"_enqueue_sync": psycopg_statements.synchronising}),
    )
    for owner, named in layers:
        for name in named:
            required(owner, name)
    for name in REPLACED:
        required(generators, name)
    for owner, named in layers:
        PATCHES.around_all(owner, named)
    PATCHES.around(
        psycopg_links.module("_conninfo_attempts"), "_resolve_hostnames", psycopg_opening.resolving
    )
    PATCHES.around(
        psycopg_links.module("_conninfo_attempts_async"),
        "_resolve_hostnames",
        psycopg_opening.resolving_async,
    )
    _replace(generators)


def _replace(generators: Any) -> None:
    """Put the generators of this module in the place of those of psycopg, wherever they are imported."""
    for name, replacement in REPLACED.items():
        original = getattr(generators, name)
        psycopg_links.ORIGINAL[name] = original
        for place in PLACES[name]:
            owner = psycopg_links.module(place)
            if getattr(owner, name, None) is original:
                PATCHES.put(owner, name, replacement)


REPLACED: Final[dict[str, Any]] = {
    "connect": psycopg_opening.connect,
    "execute": psycopg_answers.execute,
    "send": psycopg_answers.send,
    "fetch": psycopg_answers.fetch,
    "fetch_many": psycopg_answers.fetch_many,
    "pipeline_communicate": psycopg_answers.communicate,
    "copy_from": psycopg_answers.copy_from,
    "copy_to": psycopg_answers.copy_to,
    "copy_end": psycopg_answers.copy_end,
    "notifies": psycopg_answers.notifies,
}
"""By name of a generator of psycopg: what takes its place."""

PLACES: Final[dict[str, tuple[str, ...]]] = {
    "connect": ("generators",),
    "execute": ("generators", "_cursor_base", "_server_cursor_base"),
    "send": ("_cursor_base", "_pipeline_base"),
    "fetch": ("_cursor_base",),
    "fetch_many": ("_pipeline_base",),
    "pipeline_communicate": ("_pipeline_base",),
    "copy_from": ("_copy_base",),
    "copy_to": ("_copy", "_copy_async"),
    "copy_end": ("_copy", "_copy_async"),
    "notifies": ("connection", "connection_async"),
}
"""By that name: modules of psycopg that use it."""
