"""Servers that the tests of databases share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.servers.postgres import PostgresServer
from support.servers.redis import RedisServer


@pytest.fixture(scope="package")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="package")
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    try:
        yield server
    finally:
        server.stop()
