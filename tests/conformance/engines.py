"""The engines that the suite runs against, by name; a process that a test starts finds them here too."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from playhead_receiver.store import Upkeep, open_store


class Engine(Protocol):
    """How a store of one engine is opened at a place of its own."""

    def writer(self, place: Path) -> Upkeep: ...

    def reader(self, place: Path) -> Upkeep: ...


class Sqlite:
    def writer(self, place: Path) -> Upkeep:
        return open_store(place)

    def reader(self, place: Path) -> Upkeep:
        return open_store(place, read_only=True)


ENGINES: dict[str, Engine] = {"sqlite": Sqlite()}
