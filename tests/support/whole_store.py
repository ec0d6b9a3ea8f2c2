"""The type of stores under test: with all the upkeep that every engine offers."""

from typing import Protocol

from playhead_receiver.storage.api.maintenance import (
    CallDerivation,
    DerivedFindings,
    FrameCompaction,
    StoredCheckpoints,
    Summaries,
    Verification,
)
from playhead_receiver.storage.api.retention import Ageing, Retention
from playhead_receiver.storage.api.search import Search


class WholeStore(
    Retention,
    Ageing,
    Verification,
    Search,
    Summaries,
    CallDerivation,
    DerivedFindings,
    FrameCompaction,
    StoredCheckpoints,
    Protocol,
):
    """A store with all of it."""
