"""What a receiver says to a sender that asks what it is, over HTTP and over gRPC."""

from __future__ import annotations

from importlib.metadata import version

from playhead_semconv.facts import SCHEMA_VERSION
from playhead_semconv.otlp_bytes.window_request import VERSION

SERVICE, METHOD = "playhead.v1.Receiver", "About"
"""Of the call over gRPC, whose answer is the JSON that HTTP gives."""


def about() -> dict[str, str | int]:
    """Its version, that of the facts that it stores, and that of the windows that it reads."""
    return {"playhead": version("playhead-receiver"), "schema": SCHEMA_VERSION, "windows": VERSION}
