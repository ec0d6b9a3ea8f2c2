"""The receiver's description of itself for senders, over HTTP and over gRPC."""

from __future__ import annotations

from importlib.metadata import version

from playhead_core.facts import SCHEMA_VERSION
from playhead_core.otlp_bytes.window_request import VERSION

SERVICE, METHOD = "playhead.v1.Receiver", "About"
"""Names of the gRPC call. Its answer is the same JSON as over HTTP."""


def about() -> dict[str, str | int]:
    """Versions of the receiver, of the facts that it stores, and of the windows that it reads."""
    return {"playhead": version("playhead-receiver"), "schema": SCHEMA_VERSION, "windows": VERSION}
