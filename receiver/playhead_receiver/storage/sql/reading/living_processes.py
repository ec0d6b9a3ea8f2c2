"""Which processes without a reported end are alive on the machine that reads the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from playhead_core.errors import CorruptTape
from playhead_receiver.storage.runs.summary_fold import InstanceRow
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.writing.prepare import bare_run
from playhead_receiver.system.local_processes import lives
from playhead_semconv import attributes as a
from playhead_semconv import events as e

KNOWN = 1000
"""Largest number of processes whose identity is remembered."""
_identities: dict[bytes, tuple[int, str]] = {}
"""By process instance: its number and its identity."""


def with_life(db: Db, instances: Mapping[int, InstanceRow]) -> dict[int, InstanceRow]:
    """The instances, by row, with `InstanceRow.lives`, as far as this machine knows it.

    A program that replaces itself (`os.execv`) leaves no end: it ended as its last image did.
    """
    found: dict[int, InstanceRow] = {}
    for row, one in instances.items():
        if not one.exited:
            last = _last_image(db, row, one, instances)
            living = None if last.exited else lives(*_identity(db, row, one))
            one = msgspec.structs.replace(one, exited=last.exited, failed=last.failed, lives=living)
        found[row] = one
    return found


def _last_image(
    db: Db, row: int, instance: InstanceRow, instances: Mapping[int, InstanceRow]
) -> InstanceRow:
    """The last of the instances that are the same process, on the same machine, as ``instance``."""
    process = _identity(db, row, instance)
    later = [
        other
        for place, other in instances.items()
        if other.trace_id == instance.trace_id
        and other.started_ns > instance.started_ns
        and _identity(db, place, other) == process
    ]
    return max(later, key=lambda other: other.started_ns, default=instance) if process[1] else instance


def _identity(db: Db, row: int, instance: InstanceRow) -> tuple[int, str]:
    """Number and identity of a process, as its first fact states them."""
    known = _identities.get(instance.instance)
    if known is not None:
        return known
    found: Any = db.execute("SELECT data FROM fact_run WHERE instance = ? AND first = 0", (row,))
    data = next(iter(found), None)
    if data is None:
        return 0, ""
    try:
        start = bare_run(data[0])[0]
    except (CorruptTape, LookupError):  # `verify` reports it
        return 0, ""
    at = start.attributes if start.name == e.PLAYHEAD_PROCESS_START else {}
    pid, identity = at.get(a.PLAYHEAD_PROCESS_PID), at.get(a.PLAYHEAD_PROCESS_IDENTITY)
    if len(_identities) >= KNOWN:
        _identities.clear()
    identified = (pid if isinstance(pid, int) else 0), (identity if isinstance(identity, str) else "")
    _identities[instance.instance] = identified
    return identified
