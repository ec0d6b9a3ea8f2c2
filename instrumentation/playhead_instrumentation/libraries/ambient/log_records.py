"""The time, process and thread of a log record, which a formatter may print."""

from __future__ import annotations

import logging
from typing import Any, Final

from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.patches import Patches
from playhead_instrumentation.session.session import current

KIND: Final = "clock/logging.record"

FIELDS: Final = ("created", "msecs", "relativeCreated", "process", "thread")


def watch(patches: Patches, session: object = None) -> None:
    """Patch `logging.LogRecord`."""
    patches.attempt("logging", lambda: patches.around(logging.LogRecord, "__init__", _made))


def _made(init: Any, record: Any, *args: Any, **kwargs: Any) -> None:
    init(record, *args, **kwargs)
    session = current()
    if session is None or _own(record.name):
        return

    def live() -> list[Any]:
        return [getattr(record, name) for name in FIELDS]

    found = session.driver.reads.read(KIND, live)
    record.__dict__.update(zip(FIELDS, found, strict=True))


def _own(name: str) -> bool:
    """Whether a record is from playhead or an exporter; a replay lacks these or has them elsewhere."""
    if name.startswith(("playhead", "opentelemetry")) or not is_instrumentation_enabled():
        return True
    return lanes.in_own_thread()
