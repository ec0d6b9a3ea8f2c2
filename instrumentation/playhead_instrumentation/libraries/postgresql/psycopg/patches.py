"""Record statements of psycopg 3, blocking and with asyncio.

Statements are recorded when a cursor or a connection hands them to libpq (`statements`), results when
the generators of psycopg take them from libpq (`answers`). A replay connects libpq to a server that
stands in for the recorded one (`opening`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.postgresql.psycopg import answers, opening, statements
from playhead_instrumentation.libraries.postgresql.psycopg.link import ORIGINAL
from playhead_instrumentation.libraries.postgresql.psycopg.link import module as psycopg_module
from playhead_instrumentation.libraries.postgresql.psycopg.waiting import wait, wait_async
from playhead_instrumentation.patching.patches import PATCHES, required


def patch(module: ModuleType) -> None:
    """Patch psycopg, which is loaded."""
    required(module, "pq")
    waiting, generators = psycopg_module("waiting"), psycopg_module("generators")
    base, cursor = (
        psycopg_module("_connection_base").BaseConnection,
        psycopg_module("_cursor_base").BaseCursor,
    )
    client, pipeline = (
        psycopg_module("client_cursor").ClientCursorMixin,
        psycopg_module("_pipeline_base").BasePipeline,
    )
    server_cursor = psycopg_module("_server_cursor_base").ServerCursorMixin
    layers: tuple[tuple[Any, dict[str, Any]], ...] = (
        (waiting, {"wait": wait, "wait_conn": wait, "wait_async": wait_async}),
        (waiting, {"wait_conn_async": wait_async}),
        (
            base,
            {
                "_exec_command": statements.commanding,
                "_deallocate": statements.deallocating,
            },
        ),
        (
            base,
            {
                "_cancel_gen": statements.cancelling,
                "_notice_handler": statements.noticed,
                "_notify_handler": statements.notified,
            },
        ),
        (
            cursor,
            {
                "_execute_send": statements.sending,
                "_send_query_prepared": statements.sending_prepared,
            },
        ),
        (cursor, {"_send_prepare": statements.preparing}),
        (client, {"_execute_send": statements.sending}),
        (server_cursor, {"_describe_gen": statements.describing}),
        (pipeline, {"_enqueue_sync": statements.synchronising}),
    )
    for owner, named in layers:
        for name in named:
            required(owner, name)
    for name in REPLACED:
        required(generators, name)
    for owner, named in layers:
        PATCHES.around_all(owner, named)
    PATCHES.around(psycopg_module("_conninfo_attempts"), "_resolve_hostnames", opening.resolving)
    PATCHES.around(
        psycopg_module("_conninfo_attempts_async"),
        "_resolve_hostnames",
        opening.resolving_async,
    )
    _replace(generators)


def _replace(generators: Any) -> None:
    """Put the generators of this module in the place of those of psycopg, wherever they are imported."""
    for name, replacement in REPLACED.items():
        original = getattr(generators, name)
        ORIGINAL[name] = original
        for place in PLACES[name]:
            owner = psycopg_module(place)
            if getattr(owner, name, None) is original:
                PATCHES.put(owner, name, replacement)


REPLACED: Final[dict[str, Any]] = {
    "connect": opening.connect,
    "execute": answers.execute,
    "send": answers.send,
    "fetch": answers.fetch,
    "fetch_many": answers.fetch_many,
    "pipeline_communicate": answers.communicate,
    "copy_from": answers.copy_from,
    "copy_to": answers.copy_to,
    "copy_end": answers.copy_end,
    "notifies": answers.notifies,
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
