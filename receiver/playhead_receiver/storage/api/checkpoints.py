"""What the routes of checkpoints need of a store: that it keeps checkpoints beside its runs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from playhead_checkpoint.claims.leased import LeasedClaims
from playhead_checkpoint.store.sql import SqlCheckpoints
from playhead_receiver.storage.api.store import Store


@runtime_checkable
class KeptCheckpoints(Store, Protocol):
    """A store that keeps checkpoints: they are verified, copied, and deleted with their runs."""

    def checkpoints(self) -> SqlCheckpoints:
        """The checkpoints, which are opened, and made, when they are first asked for."""
        ...

    def claims(self) -> LeasedClaims:
        """The claims of effects that agents on other machines make; they stand beside them."""
        ...

    def checkpoints_there(self) -> SqlCheckpoints | None:
        """The same; None where none was ever stored."""
        ...
