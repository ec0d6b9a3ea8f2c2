"""The durable spool and the OTLP transports of an agent process."""

from playhead_exporter.outlet import SpoolOutlet, open_outlet

__all__ = ["SpoolOutlet", "open_outlet"]
