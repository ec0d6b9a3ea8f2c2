"""The places where the outside world enters or leaves the process. One file per boundary."""

from __future__ import annotations

from playhead_instrumentation.boundaries import (
    clock,
    entropy,
    files,
    grpc_aio,
    grpc_sync,
    http,
    http_aiohttp,
    http_stdlib,
    http_urllib3,
    inbound_servers,
    inputs,
    logs,
    mcp,
    network,
    output,
    process,
    sqlite,
    stdin,
    timers,
    websocket_asyncio,
    websocket_sync,
)
from playhead_instrumentation.patches import Patches
from playhead_instrumentation.session import Session


def watch(patches: Patches, session: Session) -> None:
    """Patch every boundary, each when its module is imported."""
    clock.watch(patches)
    timers.watch(patches)
    entropy.watch(patches, session)
    files.watch(patches, session)
    sqlite.watch(patches, session)
    http.watch(patches)
    http_stdlib.watch(patches)
    http_urllib3.watch(patches)
    http_aiohttp.watch(patches)
    grpc_sync.watch(patches)
    grpc_aio.watch(patches)
    websocket_asyncio.watch(patches)
    websocket_sync.watch(patches)
    stdin.watch(patches)
    logs.watch(patches)
    mcp.watch(patches)
    output.watch(patches, session)
    process.watch(patches, session)
    inputs.watch(patches)
    inbound_servers.watch(patches)
    network.watch(session)
