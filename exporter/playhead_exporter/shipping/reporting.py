"""Where the outcome of deliveries goes: counts, messages, and the folder of what was refused."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from playhead_core.errors import ReceiverRefused
from playhead_core.process.own_descriptors import write_file
from playhead_exporter.delivery import DeliveryNotices
from playhead_exporter.spool.folders import REJECTED, DiskBudget, make_folder

if TYPE_CHECKING:
    from playhead_exporter.shipping.requests import Request


TAPE = ".tape"


class Rejected:
    """The folder of refused requests and damaged segments.

    Each item is an OTLP request (``.otlp``) or a segment (``.tape``), with the reason in a file
    ``.txt``.
    """

    def __init__(self, spool: Path, budget: DiskBudget, notices: DeliveryNotices) -> None:
        self.folder = spool / REJECTED
        self.count = 0
        self._budget = budget
        self._notices = notices

    def keep(self, request: Request, instance: bytes, reason: str) -> None:
        """Put ``request``, which holds one record, aside."""
        self.count += 1
        body = request.body()
        name = f"{time.time_ns()}-{instance.hex()[:8]}-{self.count}.{request.signal}"
        kept = ""
        if self._budget.allows(len(body)):
            try:
                make_folder(self.folder)
                write_file(self.folder / f"{name}.otlp", body, os.O_EXCL)
                write_file(self.folder / f"{name}.txt", f"{reason}\n".encode(), os.O_EXCL)
                kept = f"it is kept as {self.folder / name}.otlp"
            except OSError as problem:
                kept = f"and it could not be kept: {problem.strerror}"
        else:
            kept = "and it could not be kept: the disk budget is used up"
        what = f"a record of {len(body)} bytes was refused"
        self._notices.fail(
            "rejected",
            ReceiverRefused(what, cause=reason, hint=kept),
        )

    def keep_segment(self, instance: bytes, number: int, data: bytes, damage: str) -> str:
        """Copy a damaged segment into the folder, once.

        Returns a clause for a message that says where it is.
        """
        place = self.folder / f"{instance.hex()}-{number}{TAPE}"
        if place.exists() or not self._budget.allows(len(data)):
            return ""
        try:
            make_folder(self.folder)
            write_file(place, data, os.O_EXCL)
            write_file(place.with_suffix(".txt"), f"{damage}\n".encode(), os.O_EXCL)
        except OSError as problem:
            return f"; it could not be kept: {problem.strerror}"
        return f"; it is kept as {place}"


class Tally(msgspec.Struct):
    """Counts of what became of the records of this process and of those it took over."""

    facts: int = 0
    spans: int = 0
    logs: int = 0
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
