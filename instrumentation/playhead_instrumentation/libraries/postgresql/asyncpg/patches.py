"""The edge for asyncpg.

A connection is met where it is opened (`opening`), and then where its protocol, which is written in C,
writes to its transport and is given what came (`transport`).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from playhead_instrumentation.libraries.database.set_up import setting_up_async
from playhead_instrumentation.libraries.postgresql.asyncpg import opening
from playhead_instrumentation.patching.patches import PATCHES, required


def patch(module: ModuleType) -> None:
    """Patch asyncpg. ``module``: `asyncpg.connection`, behind which all that is patched is loaded."""
    utils, protocol = sys.modules["asyncpg.connect_utils"], sys.modules["asyncpg.protocol"].Protocol
    connection: Any = required(module, "Connection")
    layers: tuple[tuple[Any, dict[str, Any]], ...] = (
        (
            utils,
            {
                "_connect_addr": opening.connecting,
                "_create_ssl_connection": opening.securing,
                "_cancel": opening.sending_cancel,
            },
        ),
        (
            protocol,
            {
                "connection_made": opening.made,
                "data_received": opening.received,
                "connection_lost": opening.lost,
            },
        ),
        (
            connection,
            {
                "_cancel": opening.cancelling,
                "_introspect_types": setting_up_async,
                "_introspect_type": setting_up_async,
            },
        ),
    )
    for owner, named in layers:
        for name in named:
            required(owner, name)
    for owner, named in layers:
        PATCHES.around_all(owner, named)
