"""The engines that the suite runs against, by name; a process that a test starts finds them here too."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Protocol

from support.whole_store import WholeStore

from playhead_receiver.storage import open_store

POSTGRES = "PLAYHEAD_TEST_POSTGRES"
"""Where the server is that this session started: the URL of a database."""


class Engine(Protocol):
    """How a store of one engine is opened at a place of its own."""

    def writer(self, place: Path) -> WholeStore: ...

    def reader(self, place: Path) -> WholeStore: ...


class Sqlite:
    def writer(self, place: Path) -> WholeStore:
        return open_store(place)

    def reader(self, place: Path) -> WholeStore:
        return open_store(place, read_only=True)


class Postgres:
    """A schema of its own for each place."""

    def writer(self, place: Path) -> WholeStore:
        return open_store(self.url(place))

    def reader(self, place: Path) -> WholeStore:
        return open_store(self.url(place), read_only=True)

    @staticmethod
    def url(place: Path) -> str:
        schema = hashlib.sha256(str(place).encode()).hexdigest()[:16]
        return f"{os.environ[POSTGRES]}&schema=store_{schema}"


ENGINES: dict[str, Engine] = {"sqlite": Sqlite(), "postgres": Postgres()}
