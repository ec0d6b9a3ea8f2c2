"""The places where the outside world enters or leaves the process. One file per boundary."""

from __future__ import annotations

from playhead_instrumentation.boundaries import (
    clock,
    entropy,
    files,
    http,
    http_aiohttp,
    http_stdlib,
    http_urllib3,
    network,
    output,
    process,
    sqlite,
)
from playhead_instrumentation.patches import Patches
from playhead_instrumentation.session import Session


def watch(patches: Patches, session: Session) -> None:
    """Patch every boundary, each when its module is imported."""
    clock.watch(patches)
    entropy.watch(patches, session)
    files.watch(patches, session)
    sqlite.watch(patches, session)
    http.watch(patches)
    http_stdlib.watch(patches)
    http_urllib3.watch(patches)
    http_aiohttp.watch(patches)
    output.watch(patches, session)
    process.watch(patches, session)
    network.watch(session)
