"""The servers that engines need, one of each for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.engines import ENGINES, POSTGRES
from support.servers.object_server import ObjectServer
from support.servers.postgres import PostgresServer
from support.whole_store import WholeStore

from playhead_receiver.storage.sqlite import overwriting

# Tests check the files after a deletion, and on a busy machine overwriting takes long.
overwriting.LONGEST_S = 60.0


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    running.start()
    os.environ[POSTGRES] = running.url()
    yield running
    del os.environ[POSTGRES]
    running.remove()


@pytest.fixture(scope="session")
def bucket() -> Iterator[ObjectServer]:
    with ObjectServer() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WholeStore]:
    if request.param == "postgres":
        request.getfixturevalue("server")
    opened = ENGINES[request.param].writer(tmp_path)
    yield opened
    opened.close()
