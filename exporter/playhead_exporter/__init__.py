"""The durable spool and the OTLP transports of an agent process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead_exporter.tape_exporter import SpoolTapeExporter, open_tape_exporter

__all__ = ["SpoolTapeExporter", "open_tape_exporter"]


def __getattr__(name: str) -> Any:
    # A program that only reads a spool does not load the shipper.
    if name not in __all__:
        raise AttributeError(name)
    from playhead_exporter import tape_exporter

    return getattr(tape_exporter, name)
