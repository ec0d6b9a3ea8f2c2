"""The type of stores under test: with all the upkeep that every engine offers."""

from typing import Protocol

from playhead_receiver.store.protocol.ageing import Ageing
from playhead_receiver.store.protocol.checkpoints import KeptCheckpoints
from playhead_receiver.store.protocol.retention import Retention
from playhead_receiver.store.protocol.search import Search
from playhead_receiver.store.protocol.upkeep import CallMeanings, FrameCompaction, Summaries
from playhead_receiver.store.protocol.verification import Verification


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
