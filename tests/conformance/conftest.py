"""The servers that engines need, one of each for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from conformance.engines import POSTGRES
from support.servers.object_server import ObjectServer
from support.servers.postgres import PostgresServer

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
