"""Facts as OTLP log records, and back. Pure functions; the transports belong to exporter and receiver.

A fact is a log record whose ``event_name`` is its name. Time, trace id and span id are in their OTLP
fields, the body is bytes, everything else is in attributes, and the process instance is an attribute of
the resource. Consecutive chunks of one exchange share a record. `unpack` is the exact inverse of `pack`.
A window holds many records in one.
"""

from playhead_core.otlp.any_values import attributes_of, set_attributes, set_value, value_of
from playhead_core.otlp.pack import MAX_EVENT_BYTES, pack, pack_resource, resource_logs
from playhead_core.otlp.unpack import instance_of, is_fact, unpack, unpack_record
from playhead_core.otlp.windows import Window, is_window, pack_window, unpack_window

__all__ = [
    "MAX_EVENT_BYTES",
    "Window",
    "attributes_of",
    "instance_of",
    "is_fact",
    "is_window",
    "pack",
    "pack_resource",
    "pack_window",
    "resource_logs",
    "set_attributes",
    "set_value",
    "unpack",
    "unpack_record",
    "unpack_window",
    "value_of",
]
