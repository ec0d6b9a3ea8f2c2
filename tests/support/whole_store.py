"""The type of stores under test: with all the upkeep that every engine offers."""

from typing import Protocol

from playhead_receiver.storage.api.ageing import Ageing
from playhead_receiver.storage.api.checkpoints import KeptCheckpoints
from playhead_receiver.storage.api.maintenance import CallMeanings, FrameCompaction, Summaries
from playhead_receiver.storage.api.retention import Retention
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.verification import Verification


class WholeStore(
    Retention,
    Ageing,
    Verification,
    Search,
    Summaries,
    CallMeanings,
    FrameCompaction,
    KeptCheckpoints,
    Protocol,
):
    """A store with all of it."""
