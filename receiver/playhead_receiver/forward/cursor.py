"""How far a destination has got, on disk: with the store it is the destination's queue."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from playhead_core.errors import StoreUnavailable
from playhead_core.facts import digest_of
from playhead_receiver.system.durable_files import keep

FOLDER = "forward"


class Cursor(msgspec.Struct):
    """The delivery state of a destination."""

    endpoint: str
    position: int
    """Everything up to this position was read."""
    waiting: list[int] = []
    """Positions, up to ``position``, of spans that still wait for their facts."""
    open: list[str] = []
    """Ids of traces for which it is not decided yet whether they are sent."""


class CursorFile:
    """A cursor file; ``name``: `Destination.name`."""

    def __init__(self, data_dir: str | os.PathLike[str], name: str) -> None:
        self._path = Path(data_dir) / FOLDER / f"{digest_of(name.encode()).hex()[:16]}.json"
        self._name = name

    def load(self, beginning: int) -> Cursor:
        """Read the cursor; one at position ``beginning`` if there is no readable file."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Cursor)
        except (FileNotFoundError, msgspec.DecodeError):
            return Cursor(self._name, beginning)

    def save(self, cursor: Cursor) -> None:
        """Write the cursor atomically. `StoreUnavailable` if that is impossible."""
        try:
            keep(self._path, msgspec.json.encode(cursor))
        except OSError as problem:
            raise StoreUnavailable(f"{self._path} cannot be written", cause=str(problem)) from problem
