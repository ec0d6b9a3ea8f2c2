"""Where the outcome of deliveries goes: counts, messages, and the folder of what was refused."""

from __future__ import annotations

import msgspec

from playhead_exporter.delivery.notices import DeliveryNotices
from playhead_exporter.shipping.rejected import Rejected


class Tally(msgspec.Struct):
    """Counts of what became of the records of this process and of those it took over."""

    facts: int = 0
    spans: int = 0
    requests: int = 0
    partly_refused: int = 0
    """Records that an endpoint refused in a request that it otherwise accepted."""
    rejected: int = 0
    """Records that were refused for good and put aside."""
    damaged: int = 0
    """Segments with a damaged part."""


class Reporting(msgspec.Struct, frozen=True):
    """Where the outcome of deliveries goes."""

    rejected: Rejected
    """Keeps what the endpoint refuses for good."""
    notices: DeliveryNotices
    """Tells the user."""
    tally: Tally = msgspec.field(default_factory=Tally)
