"""The spool: keeps what this process has recorded until it is delivered."""

from playhead_exporter.spool.copier import Copier
from playhead_exporter.spool.folders import SpoolFolders
from playhead_exporter.spool.recovery import Pending, pending, take_left
from playhead_exporter.spool.segments import LiveSegments, Segments, read_batch
from playhead_exporter.spool.spool import Spool

__all__ = [
    "Copier",
    "LiveSegments",
    "Pending",
    "Segments",
    "Spool",
    "SpoolFolders",
    "pending",
    "read_batch",
    "take_left",
]
