"""A server of PostgreSQL for all tests of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.servers.postgres import PostgresServer


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    running.start()
    yield running
    running.remove()
