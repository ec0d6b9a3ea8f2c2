"""What verification needs of a store: whether all is here, and is what came in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import msgspec

from playhead_core.integrity.tombstones import Tombstone
from playhead_receiver.storage.api.store import Store


class Finding(msgspec.Struct, frozen=True):
    """A defect that `Verification.verify` found."""

    what: str
    """``database``, ``span``, ``text``, ``link``, ``facts``, ``chain``, ``blob``, ``run``,
    ``tombstone``, ``checkpoint``, ``note`` or ``node``: of checkpoints."""
    where: str
    problem: str
    runs: list[str] = []
    """Trace ids of the affected runs, as far as they are known."""


@runtime_checkable
class Verification(Store, Protocol):
    """A store that can be compared with its digests and chains."""

    def verify(self) -> Iterator[Finding]:
        """Read everything, compare it with its digests and with what refers to it; yield all defects."""
        ...

    def not_chained(self) -> int:
        """How many processes have facts that were stored before chains existed."""
        ...

    def tombstones(self) -> Iterator[Tombstone]:
        """The tombstones of deleted runs, oldest first."""
        ...
